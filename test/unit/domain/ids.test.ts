import { expect, it } from 'vitest'
import { isUuid } from '../../../src/domain/ids.ts'

it.each([
  ['0B9F7C52-6f0c-4f6e-9d0e-0a4b4c3d2e1f', true],
  ['', false],
  ['0b9f7c526f0c4f6e9d0e0a4b4c3d2e1f', false],
  ['0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1g', false],
  ['0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1f\n', false],
])('whether %j is a UUID: %s', (text, expected) => {
  expect(isUuid(text)).toBe(expected)
})
