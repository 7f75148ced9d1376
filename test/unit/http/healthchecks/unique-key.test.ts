import { describe, expect, it } from 'vitest'
import { uniqueKeyOf } from '../../../../src/http/healthchecks/unique-key.ts'

describe('the unique key', () => {
  // The pairs of healthchecks' documentation of its API: the same two checks with a read-write and with a read-only key.
  it.each([
    ['31365bce-8da9-4729-8ff3-aaa71d56b712', 'a6c7b0a8a66bed0df66abfdab3c77736861703ee'],
    ['803f680d-e89b-492b-82ef-2be7b774a92d', '124f983e0e3dcaeba921cfcef46efd084576e783'],
  ])('of %s is that of healthchecks', (uuid, uniqueKey) => {
    expect(uniqueKeyOf(uuid)).toBe(uniqueKey)
    expect(uniqueKeyOf(uuid.toUpperCase())).toBe(uniqueKey)
  })
})
