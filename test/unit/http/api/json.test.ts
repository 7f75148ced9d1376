import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AppError } from '../../../../src/domain/errors.ts'
import { parseJsonObject } from '../../../../src/http/api/json.ts'
import { startCpuTimer } from '../../../support/cpu-time.ts'

const parse = (text: string) => parseJsonObject(Buffer.from(text))
const refusal = (bytes: Uint8Array) => {
  try {
    parseJsonObject(bytes)
  } catch (error) {
    return error
  }
  return null
}

describe('parseJsonObject', () => {
  it('reads what JSON.stringify writes, however it is spaced', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(0, 1, '\t', '\r\n'), (value, space) => {
        const text = JSON.stringify(value, null, space)
        expect(parse(text)).toEqual(JSON.parse(text))
      }),
    )
  })

  it('never breaks: bytes give an object or a rejection that a caller can read', () => {
    const text = fc
      .oneof(fc.json(), fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom(...'{}[]":,\\ux0 \n') }))
      .map((written) => Buffer.from(written))
    fc.assert(
      fc.property(fc.oneof(text, fc.uint8Array()), (bytes) => {
        const error = refusal(bytes)
        if (error === null) return
        expect(error).toBeInstanceOf(AppError)
        expect((error as AppError).code).toBe('invalid_request')
      }),
      { numRuns: 2_000 },
    )
  })

  it('takes the last one of a field that is given twice', () => {
    expect(parse('{"a": 1, "\\u0061": {"b": 1, "b": 2}}')).toEqual({ a: { b: 2 } })
  })

  it('takes a byte order mark', () => {
    expect(parse('\ufeff{"a": 1}')).toEqual({ a: 1 })
  })

  it('says nothing of the text itself, which may hold a password', () => {
    for (const text of ['{"password": "hunter2}', '{"password": hunter2}', 'hunter2', '{"password": "hunter2",}']) {
      const error = refusal(Buffer.from(text)) as AppError
      expect(error.message).toMatch(/^the body is not valid JSON/)
      expect(error.message).not.toContain('hunter')
    }
  })

  it('is quick with what is made to be slow', () => {
    const cpuMs = startCpuTimer()
    for (const text of [
      `{"a": ${'['.repeat(32_000)}${']'.repeat(32_000)}}`,
      `{"a"${' '.repeat(65_000)}:1}`,
      `{"a":[${'"",'.repeat(20_000)}""]}`,
      `{"a":"${'\\\\'.repeat(32_000)}"}`,
    ])
      parse(text)
    expect(cpuMs()).toBeLessThan(500)
  })
})
