import { describe, expect, it } from 'vitest'
import { TransportError } from '../../../src/kubernetes/errors.ts'
import { readWatchEvents, type WatchEvent } from '../../../src/kubernetes/watch-lines.ts'

interface Note {
  text?: string
}

async function* send(...chunks: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
}

async function read(...chunks: (string | Uint8Array)[]): Promise<WatchEvent<Note>[]> {
  return Array.fromAsync(readWatchEvents<Note>(send(...chunks)))
}

const lineOf = (text: string) => `${JSON.stringify({ type: 'ADDED', object: { text } })}\n`
const added = (text: string) => ({ type: 'ADDED', object: { text } })

/** Every way to cut it in two, and cut into single bytes. */
function cutsOf(bytes: Uint8Array): Uint8Array[][] {
  const inTwo = Array.from(bytes, (_, at) => [bytes.subarray(0, at), bytes.subarray(at)])
  return [...inTwo, Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))]
}

describe('a watch as bytes', () => {
  it('is read line by line, however the lines are cut, characters of several bytes among them', async () => {
    const bytes = Buffer.from(lineOf('grüß dich, 世界 🦄') + lineOf('zweite'))
    for (const chunks of cutsOf(bytes))
      expect(await read(...chunks)).toEqual([added('grüß dich, 世界 🦄'), added('zweite')])
  })

  it('gives each event as soon as its line is whole', async () => {
    const chunks = Promise.withResolvers<Uint8Array>()
    async function* slowly() {
      yield Buffer.from(`${lineOf('first')}{"type":"ADDED",`)
      yield await chunks.promise
    }
    const events = readWatchEvents<Note>(slowly())
    expect((await events.next()).value).toEqual(added('first'))
    chunks.resolve(Buffer.from('"object":{"text":"second"}}\n'))
    expect((await events.next()).value).toEqual(added('second'))
    expect((await events.next()).done).toBe(true)
  })

  it('may have lines of megabytes', async () => {
    const text = 'ä'.repeat(1_500_000)
    const bytes = Buffer.from(lineOf(text) + lineOf('next'))
    const chunks = Array.from({ length: Math.ceil(bytes.length / 16_384) }, (_, n) =>
      bytes.subarray(n * 16_384, (n + 1) * 16_384),
    )
    const events = await read(...chunks)
    expect(events.map(({ object }) => object.text?.length)).toEqual([1_500_000, 4])
  })

  it('may have empty lines', async () => {
    expect(await read('\n', lineOf('a'), '\n\n')).toEqual([added('a')])
  })

  it.each([
    ['is no JSON', '{"type":"ADDED","object":{"text":"geheim"}\n'],
    ['is no event', '{"kind":"ConfigMap","text":"geheim"}\n'],
    ['has a type that is none', '{"type":"GEHEIM","object":{}}\n'],
    ['has no object', '{"type":"ADDED","object":"geheim"}\n'],
    ['is null', 'null\n'],
    [
      'is not UTF-8',
      Buffer.concat([
        Buffer.from('{"type":"ADDED","object":{"text":"geheim'),
        Buffer.from([0xff, 0x22, 0x7d, 0x7d, 0x0a]),
      ]),
    ],
  ])('is at its end with a line that %s, and does not quote it', async (_, line) => {
    const seen: unknown[] = []
    const failure = await (async () => {
      for await (const event of readWatchEvents<Note>(send(lineOf('good'), line, lineOf('unread')))) seen.push(event)
    })().catch((error) => error)
    expect(seen).toEqual([added('good')])
    expect(failure).toBeInstanceOf(TransportError)
    expect(`${failure.message} ${failure.cause}`).not.toMatch(/geheim/i)
    expect(failure.message).toMatch(/line of \d+ bytes that is not an event/)
  })

  it('must not end within a line', async () => {
    await expect(read(lineOf('a'), '{"type":"ADD')).rejects.toThrow(/ended after 12 bytes of a line/)
  })

  it('must not send a line without end', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 0x61)
    await expect(read(...Array.from({ length: 33 }, () => chunk))).rejects.toThrow(/more than 33554432 bytes/)
  })
})
