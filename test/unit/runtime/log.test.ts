import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { redactIds } from '../../../src/runtime/log.ts'
import { startCpuTimer } from '../../support/cpu-time.ts'

describe('a password in a URL', () => {
  it.each([
    ['postgres://heartbeat:hunter2@db:5432/x', 'postgres://heartbeat:…@db:5432/x'],
    ['two: https://a:b@c, and SMTP://d:e:f@g', 'two: https://a:…@c, and SMTP://d:…@g'],
    ['(https://a:b@c)(https://d:e@f)', '(https://a:…@c)(https://d:…@f)'],
    ['x@https://a:b@c', 'x@https://a:…@c'],
    ['https://a:b/c@d', 'https://a:…@d'],
    ['https://example.com:8081/a mail@example.com', 'https://example.com:8081/a mail@example.com'],
    [
      'https://user@example.com and https://user:@example.com',
      'https://user@example.com and https://user:@example.com',
    ],
  ])('is not shown: %s', (text, shown) => {
    expect(redactIds(text)).toBe(shown)
  })

  it.each([
    ['many beginnings of a URL', 'a://a:'],
    ['letters', 'a'],
    ['many words', 'a.'],
    ['many names', 'a@'],
  ])('is looked for in a time that grows with the length alone: %s', (_, piece) => {
    const text = piece.repeat(1_000_000 / piece.length)
    const used = startCpuTimer()
    redactIds(text)
    expect(used()).toBeLessThan(1_000)
  })
})

it('a JSON line shows a change of direction as an escape, which means the same', () => {
  const module = new URL('../../../src/runtime/log.ts', import.meta.url)
  const name = 'a\u202eb\u2066c\u200e'
  const program = `import { createLog } from '${module}'
    createLog({ level: 'info', format: 'json' }).info({ name: process.argv[1] }, 'said')`
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program, name], { encoding: 'utf8' })
  expect(stderr).toContain('"name":"a\\u202eb\\u2066c\u200e"')
  expect(JSON.parse(stderr)).toMatchObject({ name, msg: 'said' })
})
