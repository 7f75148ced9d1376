import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type StatusCounts, statusOfAll } from '../../../src/domain/badge.ts'
import { badgePath, parseBadgePath } from '../../../src/http/badges/path.ts'
import { renderBadge } from '../../../src/http/badges/render.ts'

const KEY = 'Zp8sH1uQe6GxN4aKtV5oBr'
const NONE: StatusCounts = { new: 0, up: 0, late: 0, down: 0, paused: 0 }

describe('the address of a badge', () => {
  it.each([
    ['.svg', { kind: 'project' }, 'svg'],
    ['/job-1.svg', { kind: 'check', slug: 'job-1' }, 'svg'],
    ['/job.json', { kind: 'check', slug: 'job' }, 'json'],
    ['/tag.shields', { kind: 'check', slug: 'tag' }, 'shields'],
    ['/tag/nightly.svg', { kind: 'tag', tag: 'nightly' }, 'svg'],
    ['/tag/team:a/b.c.json', { kind: 'tag', tag: 'team:a/b.c' }, 'json'],
    ['/tag/team%3Aa%2Fb.json', { kind: 'tag', tag: 'team:a/b' }, 'json'],
    ['/tag/x.svg.svg', { kind: 'tag', tag: 'x.svg' }, 'svg'],
    [`/tag/${'x'.repeat(50)}.svg`, { kind: 'tag', tag: 'x'.repeat(50) }, 'svg'],
  ])('%s', (rest, subject, format) => {
    expect(parseBadgePath(`/badge/${KEY}${rest}`)).toEqual({ badgeKey: KEY, subject, format })
  })

  it.each([
    '',
    '.png',
    '.SVG',
    '/.svg',
    '/job',
    '/Job.svg',
    '/job/.svg',
    '/a/b.svg',
    '/j.o.b.svg',
    '/tag/.svg',
    '/tag/a b.svg',
    '/tag/%zz.svg',
    '/tag/%00.svg',
    '/tag/a%20b.svg',
    `/tag/${'x'.repeat(51)}.svg`,
    'x.svg',
    '/job.svg/',
  ])('%j behind a key is none', (rest) => {
    expect(parseBadgePath(`/badge/${KEY}${rest}`)).toBeNull()
  })

  it('is read back as it is written, and nothing else is', () => {
    const tags = fc.stringMatching(/^[A-Za-z0-9_.:/-]{1,50}$/)
    const slugs = fc.stringMatching(/^[a-z0-9]([a-z0-9_-]{0,98}[a-z0-9])?$/)
    const subjects = fc.oneof(
      tags.map((tag) => ({ kind: 'tag', tag }) as const),
      slugs.map((slug) => ({ kind: 'check', slug }) as const),
      fc.constant({ kind: 'project' } as const),
    )
    fc.assert(
      fc.property(subjects, fc.constantFrom('svg', 'json', 'shields'), (subject, format) => {
        expect(parseBadgePath(`${badgePath(KEY, subject)}.${format}`)).toEqual({ badgeKey: KEY, subject, format })
      }),
    )
    fc.assert(
      fc.property(fc.string(), (rest) => {
        const parsed = parseBadgePath(`/badge/${KEY}/${rest}`)
        if (parsed?.subject.kind === 'check') expect(parsed.subject.slug).toMatch(/^[a-z0-9][a-z0-9_-]{0,99}$/)
        if (parsed?.subject.kind === 'tag') expect(parsed.subject.tag).toMatch(/^[A-Za-z0-9_.:/-]{1,50}$/)
      }),
    )
  })
})

describe('the status of several checks', () => {
  it.each([
    [{}, 'new', 'new'],
    [{ new: 2 }, 'new', 'new'],
    [{ paused: 2 }, 'paused', 'paused'],
    [{ new: 1, paused: 2 }, 'new', 'new'],
    [{ new: 1, paused: 2, up: 1 }, 'up', 'up'],
    [{ up: 5, late: 1 }, 'late', 'up'],
    [{ late: 1, paused: 1 }, 'late', 'up'],
    [{ up: 5, late: 1, down: 1 }, 'down', 'down'],
  ] as const)('%j: %s, with two states %s', (counts, three, two) => {
    expect([statusOfAll({ ...NONE, ...counts }, false), statusOfAll({ ...NONE, ...counts }, true)]).toEqual([
      three,
      two,
    ])
  })
})

describe('a badge', () => {
  const colorOf = async (status: keyof StatusCounts) => {
    const { text } = await renderBadge('svg', { label: 'job', counts: { ...NONE, [status]: 1 } }, false)
    return [...text.matchAll(/fill="(#[0-9a-f]{3,6})"/g)].map(([, color]) => color)
  }

  it('is green, yellow, red or grey', async () => {
    expect(await colorOf('up')).toContain('#4b0')
    expect(await colorOf('late')).toContain('#d8b800')
    expect(await colorOf('down')).toContain('#dd4343')
    expect(await colorOf('new')).toContain('#939393')
    expect(await colorOf('paused')).toContain('#939393')
  })

  it('shows any name as text', async () => {
    const label = `<script>alert("1")</script> & 'Größe' ]]> 漢字`
    const { text } = await renderBadge('svg', { label, counts: { ...NONE, up: 1 } }, false)
    expect(text).not.toMatch(/<script|alert\("|]]>/)
    expect(text).toContain('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &apos;Größe&apos; ]]&gt; 漢字')
  })

  it('has a bounded size', async () => {
    const { text } = await renderBadge('svg', { label: '&'.repeat(100), counts: { ...NONE, up: 1 } }, false)
    expect(text.length).toBeLessThan(5_000)
  })
})
