/** Documents that stay true: their links, their commands, and what they say of the code. */

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { VARIABLES } from '../../../src/config/variables.ts'
import { REASONS } from '../../e2e/demo.ts'
import { CHECKOUT, DOCUMENTS, findBrokenLinks, listBlocks, listFiles, readText } from '../../support/documents.ts'

const RUNNABLE = ['sh', 'bash', 'js', 'python', 'go', 'powershell', 'php', 'ruby']

describe('the README', () => {
  it('fits on 100 lines, and CONTRIBUTING on 150', () => {
    const countLines = (document: string) => readText(document).trimEnd().split('\n').length
    expect(countLines('README.md')).toBeLessThanOrEqual(100)
    expect(countLines('CONTRIBUTING.md')).toBeLessThanOrEqual(150)
  })

  it('names each test lane and benchmark of package.json', () => {
    const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> }
    const lanes = Object.keys(scripts).filter((name) => /^(test|bench|mutate|faults|check$)/.test(name))
    const documented = ['README.md', 'CONTRIBUTING.md', 'docs/internals/benchmarks.md'].map(readText).join('\n')
    const command = (name: string) => (name === 'test' ? '`npm test`' : `\`npm run ${name}\``)
    expect(lanes.map(command).filter((text) => !documented.includes(text))).toEqual([])
  })
})

describe('links', () => {
  it.each(DOCUMENTS)('%s links only to files and headings that exist', (document) => {
    expect(findBrokenLinks(document)).toEqual([])
  })

  it('to a missing file or heading are found', () => {
    const text =
      '[a](missing.md) [b](#no-such) [c](docs/internals/design.md#4-the-state-machine) [d](https://example.com)'
    expect(findBrokenLinks('README.md', text)).toEqual(['README.md: missing.md', 'README.md: #no-such'])
  })
})

/** Why a block counts as checked; null: it does not. */
function judge(marker: string | null): string | null {
  const [, kind, what = ''] = /^(test|untested): (.+)$/.exec(marker ?? '') ?? []
  if (kind === 'untested') return what
  const isRun = kind === 'test' && existsSync(join(CHECKOUT, what)) && readText(what).includes('listBlocksOf(')
  return isRun ? what : null
}

describe('commands', () => {
  it.each(DOCUMENTS)('%s: each block is run by a test, or says why it is not', (document) => {
    const unchecked = listBlocks(document).filter(
      ({ language, marker }) => RUNNABLE.includes(language) && judge(marker) === null,
    )
    expect(unchecked.map(({ line, marker }) => `${document}:${line} ${marker}`)).toEqual([])
  })

  it.each([null, 'untested:', 'test: test/process/missing.test.ts', 'test: test/unit/docs/documents.ts', 'other: x'])(
    'a block with the marker %s is not checked',
    (marker) => {
      expect(judge(marker)).toBeNull()
    },
  )
})

describe('docs/reference/configuration.md', () => {
  it('has each variable that src/config/variables.ts has, and no other', () => {
    const read = Object.values(VARIABLES).map(([name]) => name)
    expect(read.length).toBeGreaterThan(20)
    const rows = readText('docs/reference/configuration.md').matchAll(/^\| ((?:`[A-Z_]+`(?:, )?)+) \|/gm)
    const documented = [...rows].flatMap(([, names]) => [...names!.matchAll(/[A-Z_]{3,}/g)].map(([name]) => name))
    // KUBECONFIG is kubectl's own variable, read by kubernetes/connection.ts.
    expect(documented.filter((name) => name !== 'KUBECONFIG').sort()).toEqual(read.sort())
  })
})

describe('plain words', () => {
  // Each in two parts, because this file is searched too. Text of a migration that was released stays as it is.
  const unclear = [
    ['some', 'body'],
    ['any', 'body'],
    ['every', 'body'],
    ['who', 'ever'],
    ['to', 'ld'],
  ]
  const pattern = new RegExp(`\\b(${unclear.map((parts) => parts.join('')).join('|')})\\b`, 'i')
  const files = new Set([...DOCUMENTS, ...['src', 'test', 'tools', 'charts', 'manifests'].flatMap(listFiles)])

  it('name who acts, in code, documents, the chart and tests', () => {
    const texts = [...files].filter(
      (path) => /\.(ts|js|mjs|md|ya?ml|tpl|css|sql|txt)$/.test(path) && !path.includes('/migrations/'),
    )
    expect(texts.length).toBeGreaterThan(1_000)
    const found = texts.flatMap((path) => {
      const word = pattern.exec(readText(path))
      return word === null ? [] : [`${path}: ${word[0]}`]
    })
    expect(found).toEqual([])
  })
})

describe('messages and metrics', () => {
  const code = listFiles('src')
    .filter((path) => path.endsWith('.ts'))
    .map(readText)
    .join('\n')
  const messages = [
    ...readText('docs/operate/alerts.md').matchAll(/grep '([^']+)'/g),
    ...readText('docs/use/channels.md').matchAll(/^\| (?:info|warn|error) \| `([^`]+)`/gm),
    ...readText('docs/operate/operations.md').matchAll(/logs `([^`]+)`/g),
    ...readText('docs/operate/troubleshooting.md').matchAll(/^\| `([a-z]+ [^`.]+)`/gm),
  ].map(([, message]) => message!)

  it('no document names a metric that does not exist', () => {
    const named = DOCUMENTS.flatMap((document) => readText(document).match(/\bheartbeat_[a-z_]+\b/g) ?? [])
    expect(named.length).toBeGreaterThan(10)
    expect(named.filter((metric) => !code.includes(`'${metric}'`))).toEqual([])
  })

  it.each(messages)('the log has the message that the documents quote: %s', (message) => {
    expect(code).toContain(message)
  })
})

describe('src/README.md', () => {
  const text = readText('src/README.md')
  const isThere = (path: string) => ['', '.ts'].some((end) => existsSync(join(CHECKOUT, 'src', `${path}${end}`)))

  it('has a row for each folder, with files that exist in it', () => {
    const rows = [...text.matchAll(/^\| `([\w./-]+\/)` \| .*? \| (.*) \|$/gm)]
    const named = rows.flatMap(([, folder, files]) =>
      [...files!.matchAll(/`([\w./-]+)`/g)].map(([, file]) => join(folder!, file!)),
    )
    expect(named.filter((path) => !isThere(path))).toEqual([])
    const folders = new Set(listFiles('src').map((path) => `${dirname(path).slice('src/'.length)}/`))
    const without = [...folders].filter((folder) => !rows.some(([, row]) => folder === row || row === './'))
    expect(without).toEqual([])
  })

  it('names only files and folders that exist, in the text and in the diagrams', () => {
    const diagrams = text.match(/^```\n.*?^```$/gms)!.join('\n')
    const [, whereToAdd = ''] = /^## Where to add\n(.*?)^## /ms.exec(text) ?? []
    const prose = text.replace(/^```.*?^```$/gms, '').replace(/^\|.*$/gm, '') + whereToAdd
    const drawn = [...diagrams.matchAll(/(?<![/\w])([a-z-]+(?:\/[a-z-]+)+)/g)].map(([, path]) => path!)
    const written = [...prose.matchAll(/`([\w-]+(?:\/[\w.-]+)+)`/g)].map(([, path]) => path!)
    expect(whereToAdd).toContain('**A status**')
    expect(drawn.length).toBeGreaterThan(20)
    expect(written.length).toBeGreaterThan(10)
    expect([...drawn, ...written].filter((path) => !isThere(path) && !existsSync(join(CHECKOUT, path)))).toEqual([])
  })
})

describe('the demo of CronJobs', () => {
  const text = readText('docs/use/cronjobs.md')

  it('has the picture of the README, which the e2e lane compares with a cluster', () => {
    const picture = /^```\n(NAME .*?)^```$/ms.exec(readText('README.md'))![1]!
    expect(text).toContain(picture)
  })

  it.each(Object.entries(REASONS))('has the reason of %s as the e2e lane expects it', (name, reason) => {
    expect(new RegExp(`^\\| \`${name}\` \\| \`(.*)\` \\|$`, 'm').exec(text)?.[1]).toMatch(reason)
  })
})
