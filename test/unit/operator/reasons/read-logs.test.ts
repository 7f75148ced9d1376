/** The last lines of a container that failed: what is asked of the API server, and how much, and how long. */

import { describe, expect, it } from 'vitest'
import { createLogReader } from '../../../../src/operator/reasons/read-logs.ts'
import { createManualClock } from '../../../support/manual-clock.ts'

function start(answer: (query: URLSearchParams) => Promise<string> = async () => 'the end\n') {
  const clock = createManualClock()
  const requests: { path: string; query: URLSearchParams; timeoutMs: number | undefined }[] = []
  const problems: unknown[] = []
  const reader = createLogReader({
    client: {
      async raw(_method, path, _body, options) {
        const [where, text] = path.split('?')
        const query = new URLSearchParams(text)
        requests.push({ path: where!, query, timeoutMs: options?.timeoutMs })
        return answer(query)
      },
    },
    clock,
    onProblem: (error) => problems.push(error),
  })
  const abort = new AbortController()
  const read = (isRestarted = false) =>
    reader.read('payments', { pod: 'nightly-1', name: 'backup', isRestarted }, abort.signal)
  return { clock, requests, problems, read, abort }
}

describe('a log', () => {
  it('is asked for by its last 100 lines, for two seconds', async () => {
    const { read, requests } = start()
    expect(await read()).toBe('the end\n')
    expect(requests.map(({ path, query, timeoutMs }) => [path, `${query}`, timeoutMs])).toEqual([
      ['/api/v1/namespaces/payments/pods/nightly-1/log', 'container=backup&tailLines=100&limitBytes=262144', 2_000],
    ])
  })

  it('is that of the attempt before, where the container runs again', async () => {
    const { read, requests } = start()
    await read(true)
    expect(requests[0]!.query.get('previous')).toBe('true')
  })

  it('is asked for again by fewer lines when the node has cut its end', async () => {
    const { read, requests } = start(async (query) =>
      query.get('tailLines') === '100' ? 'x'.repeat(262_144) : 'short\n',
    )
    expect(await read()).toBe('short\n')
    expect(requests.map(({ query }) => query.get('tailLines'))).toEqual(['100', '5'])
  })

  it('is left out when it cannot be read, which is reported once a minute', async () => {
    const { clock, read, problems } = start(async () => {
      throw new Error('forbidden')
    })
    for (let count = 0; count < 3; count += 1) expect(await read()).toBeNull()
    expect(problems).toHaveLength(1)
    await clock.advance(60_000)
    await read()
    expect(problems).toHaveLength(2)
  })

  it('that a stop has ended is no problem', async () => {
    const { read, problems, abort } = start(async () => {
      abort.abort()
      throw new Error('aborted')
    })
    expect(await read()).toBeNull()
    expect(problems).toEqual([])
  })

  it('is read of ten containers at once; those behind 100 that wait, or that wait too long, have none', async () => {
    const answers: (() => void)[] = []
    const { clock, read, requests } = start(() => new Promise((resolve) => answers.push(() => resolve('the end'))))
    const all = Array.from({ length: 111 }, () => read())
    expect(await all[110]).toBeNull()
    expect(requests).toHaveLength(10)
    await clock.advance(2_000)
    for (const answer of answers) answer()
    const texts = await Promise.all(all)
    expect(texts.filter((text) => text !== null)).toHaveLength(10)
    expect(requests).toHaveLength(10)
  })
})
