import { expect, it } from 'vitest'
import type { RunReport } from '../../../../src/operator/runs/describe-run.ts'
import { createRunNews, type News, type RunNews } from '../../../../src/operator/runs/run-news.ts'

const report = (body = ''): RunReport => ({
  source: 'backup',
  runId: 'a',
  job: 'a',
  entries: [{ type: 'log', at: 0, body }],
  lastRun: null,
})
const newsOf = (id: string, body = ''): News => ({ id, at: 0, report: report(body) })
const idsOf = (news: RunNews, key = 'shop/backup') => news.ready(key).map((one) => one.news.id)
const none = () => false

it('has the news of a check in the order of arrival, and newer news of a run behind what came in between', () => {
  const news = createRunNews()
  for (const id of ['a', 'b', 'a']) news.put('shop/backup', newsOf(id))
  news.put('shop/other', newsOf('c'))
  expect([idsOf(news), idsOf(news, 'shop/other'), idsOf(news, 'shop/none')]).toEqual([['b', 'a'], ['c'], []])
})

it('has what comes before the first report that is not known', () => {
  const news = createRunNews()
  const unknown: News = { id: 'b', at: 0, report: null }
  for (const one of [newsOf('a'), unknown, newsOf('c')]) news.put('shop/backup', one)
  expect(idsOf(news)).toEqual(['a'])
  unknown.report = report()
  expect(idsOf(news)).toEqual(['a', 'b', 'c'])
})

it('has what a comparison finds before the others that happened later, and these in the order of arrival', () => {
  const news = createRunNews()
  for (const [id, at] of [
    ['c', 30],
    ['a', 10],
    ['e', 50],
  ] as const)
    news.put('shop/backup', { ...newsOf(id), at })
  for (const [id, order] of [
    ['past', -70],
    ['b', 20],
    ['d', 40],
    ['f', 60],
  ] as const)
    news.put('shop/backup', newsOf(id), order)
  expect(idsOf(news)).toEqual(['past', 'b', 'c', 'a', 'd', 'e', 'f'])
})

it('keeps news that replaced the recorded ones', () => {
  const news = createRunNews()
  news.put('shop/backup', newsOf('a'))
  const [older] = news.ready('shop/backup')
  news.put('shop/backup', newsOf('a', 'newer'))
  news.remove('shop/backup', older!)
  expect(news.ready('shop/backup')[0]!.news.report!.entries[0]).toMatchObject({ body: 'newer' })
  news.remove('shop/backup', news.ready('shop/backup')[0]!)
  expect(news.keys()).toEqual([])
})

it('takes nothing above its limit, and takes again when something is recorded', () => {
  const news = createRunNews(3)
  expect(['a', 'b', 'c', 'd'].map((id) => news.put('shop/backup', newsOf(id)))).toEqual([true, true, true, false])
  expect(news.put('shop/backup', newsOf('a', 'x'.repeat(1_000)))).toBe(false)
  expect(news.put('shop/backup', newsOf('a'))).toBe(true)
  news.remove('shop/backup', news.ready('shop/backup')[0]!)
  expect(news.put('shop/backup', newsOf('d'))).toBe(true)
  expect(idsOf(news)).toEqual(['c', 'a', 'd'])
})

it('awaits what came up to a time, also newer news of the same run, and neither held nor rejected news', () => {
  const news = createRunNews()
  news.put('shop/backup', newsOf('a'))
  const until = news.last()
  news.put('shop/backup', newsOf('a', 'newer'))
  news.put('shop/backup', newsOf('b'))
  expect(news.isAwaited(until, none)).toBe(true)
  expect(news.isAwaited(until, (key) => key === 'shop/backup')).toBe(false)
  const [a] = news.ready('shop/backup')
  expect(news.reject('shop/backup', a!)).toBe(true)
  expect([news.isAwaited(until, none), idsOf(news)]).toEqual([false, ['b']])
  expect(news.retryRejected()).toEqual(['shop/backup'])
  expect([news.isAwaited(until, none), idsOf(news)]).toEqual([true, ['a', 'b']])
  news.remove('shop/backup', a!)
  expect(news.isAwaited(until, none)).toBe(false)
})

it('awaits a comparison until it ends, unless another one was asked for meanwhile', () => {
  const news = createRunNews()
  news.compare('shop/backup')
  const until = news.last()
  const first = news.comparisonOf('shop/backup')!
  news.compare('shop/backup')
  news.compared('shop/backup', first)
  expect([news.isAwaited(until, none), news.toCompare()]).toEqual([true, ['shop/backup']])
  news.compared('shop/backup', news.comparisonOf('shop/backup')!)
  expect([news.isAwaited(until, none), news.toCompare()]).toEqual([false, []])
})
