import { describe, expect, it } from 'vitest'
import { AppError } from '../../../src/domain/errors.ts'
import { limitRejections } from '../../../src/http/middleware/limit-rejections.ts'
import { MINUTE } from '../../support/builders.ts'

/** `call` resolves with the code of the error that the middleware throws for a 401, or for `outcome`. */
function aLimit() {
  const clock = { time: 1_000_000, now: () => clock.time }
  const limit = limitRejections(clock, ({ state }) => state.address)
  const call = async (address = '192.0.2.1', outcome: AppError | null = new AppError('unauthenticated', 'wrong')) => {
    const next = () => (outcome === null ? Promise.resolve() : Promise.reject(outcome))
    try {
      await limit({ state: { address } } as Parameters<typeof limit>[0], next)
      return 'done'
    } catch (error) {
      return (error as AppError).code
    }
  }
  const times = async (count: number, address?: string) => {
    const codes = await Promise.all(Array.from({ length: count }, () => call(address)))
    return codes.filter((code) => code === 'unauthenticated').length
  }
  return { clock, limit, call, times }
}

describe('rejected credentials of one address', () => {
  it('get 401 three hundred times in a minute, then 429 with the time to wait', async () => {
    const { clock, limit, call, times } = aLimit()
    expect(await times(300)).toBe(300)
    clock.time += MINUTE - 1_500
    const error = await limit({ state: { address: '192.0.2.1' } } as Parameters<typeof limit>[0], () =>
      Promise.reject(new AppError('unauthenticated', 'wrong')),
    ).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'too_many_requests', retryAfterSeconds: 2 })
    expect(await call('192.0.2.2')).toBe('unauthenticated')
  })

  it('do not hinder a valid credential, nor other errors', async () => {
    const { call, times } = aLimit()
    await times(301)
    expect(await call('192.0.2.1', null)).toBe('done')
    expect(await call('192.0.2.1', new AppError('not_found', 'none'))).toBe('not_found')
  })

  it('count in a window that slides', async () => {
    const { clock, times } = aLimit()
    await times(400)
    clock.time += MINUTE
    expect(await times(10)).toBe(0)
    clock.time += MINUTE / 2
    expect(await times(400)).toBe(150)
    clock.time += 2 * MINUTE
    expect(await times(400)).toBe(300)
  })

  it('count for an IPv6 network as a whole', async () => {
    const { call, times } = aLimit()
    await times(300, '2001:db8::1')
    expect(await call('2001:db8::2')).toBe('too_many_requests')
    expect(await call('2001:db8:0:1::2')).toBe('unauthenticated')
  })

  it('are counted for ten thousand addresses at most: the first ones are forgotten', async () => {
    const { call, times } = aLimit()
    await times(300, '198.51.100.1')
    for (let place = 0; place < 9_999; place += 1) await call(`10.0.${place >> 8}.${place & 255}`)
    expect(await call('198.51.100.1')).toBe('too_many_requests')
    await call('10.1.0.0')
    expect(await call('198.51.100.1')).toBe('unauthenticated')
  })
})
