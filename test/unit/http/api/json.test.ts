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
        expect((error as AppError).code).toBe('invalid')
      }),
      { numRuns: 2_000 },
    )
  })

  it('finds a name that comes twice at any depth, and only then', () => {
    const name = fc.constantFrom('a', '"', '\\', 'a:', '{', '\u0000', '__proto__')
    const member = fc
      .tuple(name, fc.jsonValue())
      .map(([key, value]) => [key, `${JSON.stringify(key)} : ${JSON.stringify(value)}`] as const)
    fc.assert(
      fc.property(
        fc.array(member, { maxLength: 5 }),
        fc.constantFrom(
          (object: string) => object,
          (object: string) => `{"x": [1, ${object}, "a"]}`,
        ),
        (members, wrap) => {
          const isRepeated = new Set(members.map(([key]) => key)).size < members.length
          const error = refusal(Buffer.from(wrap(`{${members.map(([, text]) => text).join(' ,')}}`)))
          if (isRepeated)
            expect(error).toMatchObject({
              code: 'invalid',
              message: expect.stringMatching(/ is given more than once$/),
            })
          else expect(error).toBeNull()
        },
      ),
    )
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

  it('shortens a long name', () => {
    const name = 'x'.repeat(10_000)
    expect((refusal(Buffer.from(`{"${name}": 1, "${name}": 2}`)) as AppError).message.length).toBeLessThan(200)
  })

  it('takes a thousand fields, at any depth, and no more', () => {
    const body = (count: number) => {
      const fields = Array.from({ length: count - 1 }, (_, index) => `"f${index}":${index}`)
      return Buffer.from(`{"a":{${fields.join(',')}}}`)
    }
    expect(refusal(body(1_000))).toBeNull()
    expect(refusal(body(1_001))).toMatchObject({ code: 'invalid', message: 'the body has more than 1000 fields' })
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
