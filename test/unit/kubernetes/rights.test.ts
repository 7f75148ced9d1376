/** Which rights are missing, by what an API server says of them. */

import { beforeEach, describe, expect, it } from 'vitest'
import { TransportError } from '../../../src/kubernetes/errors.ts'
import { createRights, type Right } from '../../../src/kubernetes/rights.ts'
import { anApiError } from '../../support/builders.ts'

const JOBS = { group: 'batch', plural: 'jobs' }
const PODS = { group: '', plural: 'pods' }
const LIST_JOBS: Right = { verb: 'list', type: JOBS }
const WATCH_JOBS: Right = { verb: 'watch', type: JOBS }
const GET_LOGS: Right = { verb: 'get', type: PODS, subresource: 'log' }
const { signal } = new AbortController()

let denied: Set<string>
let answer: ((allowed: boolean) => unknown) | null
let asked: string[]
let heard: (string | undefined)[]

beforeEach(() => {
  denied = new Set()
  answer = (allowed) => ({ status: { allowed } })
  asked = []
  heard = []
})

interface Review {
  readonly spec: { readonly resourceAttributes: Record<string, string | undefined> }
}

function open(namespaces: readonly string[] | null = null) {
  const rights = createRights({
    namespaces,
    needed: [LIST_JOBS, WATCH_JOBS, GET_LOGS],
    client: {
      async raw(method, path, body) {
        expect([method, path]).toEqual(['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'])
        const { namespace = '*', verb, group, resource, subresource } = (body as Review).spec.resourceAttributes
        const text = `${namespace} ${verb} ${group}/${resource}${subresource === undefined ? '' : `/${subresource}`}`
        asked.push(text)
        return answer!(!denied.has(text))
      },
    },
  })
  rights.onChange((namespace) => heard.push(namespace))
  const askTimes = async (times: number) => {
    for (let n = 0; n < times; n += 1) await rights.ask(signal)
    return asked.splice(0)
  }
  const missing = (namespace = 'shop') => rights.missing(namespace).map(({ right }) => right)
  return { rights, askTimes, missing }
}

const fail = (error: Error) => {
  answer = () => {
    throw error
  }
}
const ALL = ['* list batch/jobs', '* watch batch/jobs', '* get /pods/log']

describe('the questions', () => {
  it('are all at the beginning, then one after the other, so that each comes once a minute', async () => {
    const { rights, askTimes } = open()
    expect(rights.everyMs).toBe(20_000)
    expect(await askTimes(1)).toEqual(ALL)
    expect(await askTimes(4)).toEqual([...ALL, ALL[0]])
  })

  it('are about one namespace after the other, ten in a second at most', async () => {
    const { rights, askTimes } = open(['shop', 'bank'])
    expect(rights.everyMs).toBe(10_000)
    expect(await askTimes(1)).toEqual(['shop list batch/jobs', 'shop watch batch/jobs', 'shop get /pods/log'])
    expect((await askTimes(1))[0]).toBe('bank list batch/jobs')
    const names = (count: number) => Array.from({ length: count }, (_, index) => `n-${index}`)
    expect(open(names(200)).rights.everyMs).toBe(100)
    expect(open(names(201)).rights.everyMs).toBe(100)
    expect(open(names(199)).rights.everyMs).toBeGreaterThan(100)
  })

  it('are all about an area again when one of its rights has come or gone', async () => {
    const { askTimes, missing } = open()
    await askTimes(1)
    denied = new Set(ALL)
    expect(await askTimes(1)).toEqual([ALL[0]])
    expect(missing()).toEqual(['list jobs.batch'])
    expect(await askTimes(1)).toEqual(ALL)
    expect(missing()).toEqual(['list jobs.batch', 'watch jobs.batch', 'get pods/log'])
    expect(heard).toEqual([undefined, undefined, undefined])
  })

  it('follow a rejected request at once', async () => {
    const { rights, askTimes } = open(['shop', 'bank'])
    await askTimes(2)
    rights.note('bank', LIST_JOBS, true)
    expect((await askTimes(1)).length).toBe(1)
    rights.note('bank', LIST_JOBS, false)
    expect((await askTimes(1)).map((text) => text.split(' ')[0])).toEqual(['bank', 'bank', 'bank'])
    // No right that is needed.
    rights.note('bank', { verb: 'list', type: PODS }, false)
    expect((await askTimes(1)).length).toBe(1)
    expect(heard).toEqual([])
  })

  it('about a whole area come again when the API server has not answered one of them', async () => {
    const { askTimes, missing } = open()
    fail(new TransportError('timeout'))
    expect(await askTimes(2)).toEqual([...ALL, ...ALL])
    denied = new Set(ALL)
    answer = (allowed) => ({ status: { allowed } })
    await askTimes(1)
    expect(missing().length).toBe(3)
  })

  it('end with the signal', async () => {
    const { rights } = open()
    await rights.ask(AbortSignal.abort())
    expect(asked).toEqual([])
  })
})

describe('a right', () => {
  it('is missing in the namespace of the question, and in all where that is about all', async () => {
    denied = new Set(['bank watch batch/jobs'])
    const some = open(['shop', 'bank'])
    await some.askTimes(2)
    expect([some.missing('shop'), some.missing('bank'), some.missing('other')]).toEqual([
      [],
      ['watch jobs.batch in the namespace bank'],
      [],
    ])
    expect(heard).toEqual(['bank'])
    denied = new Set(['* get /pods/log'])
    const all = open()
    await all.askTimes(1)
    expect([all.missing('shop'), all.missing('bank')]).toEqual([['get pods/log'], ['get pods/log']])
  })

  it('stays as it is known while there is no answer, or none that says it', async () => {
    const { askTimes, missing } = open()
    denied = new Set([ALL[2]!])
    await askTimes(1)
    for (const nothing of [new TransportError('reset'), anApiError(429), anApiError(500)]) {
      fail(nothing)
      await askTimes(4)
      expect(missing()).toEqual(['get pods/log'])
    }
    for (const nothing of ['<html>', {}, { status: {} }]) {
      answer = () => nothing
      await askTimes(4)
      expect(missing()).toEqual(['get pods/log'])
    }
  })

  it('is what the API server says, whatever a request was answered', async () => {
    const { rights, askTimes, missing } = open()
    await askTimes(1)
    rights.note(undefined, LIST_JOBS, false)
    await askTimes(1)
    expect([missing(), heard]).toEqual([[], []])
  })
})

describe.each([403, 404, 405])('an API server that answers %i to reviews', (status) => {
  it('shows what is missing by its answers to requests, until it answers a review', async () => {
    const { rights, askTimes, missing } = open()
    fail(anApiError(status))
    await askTimes(1)
    expect(missing()).toEqual([])
    rights.note(undefined, WATCH_JOBS, false)
    expect([missing(), heard]).toEqual([['watch jobs.batch'], [undefined]])
    rights.note(undefined, WATCH_JOBS, false)
    expect(heard).toEqual([undefined])
    rights.note(undefined, WATCH_JOBS, true)
    expect([missing(), heard.length]).toEqual([[], 2])
    denied = new Set([ALL[0]!])
    answer = (allowed) => ({ status: { allowed } })
    await askTimes(4)
    expect([missing(), heard.length]).toEqual([['list jobs.batch'], 3])
    rights.note(undefined, WATCH_JOBS, false)
    expect(missing()).toEqual(['list jobs.batch'])
  })
})
