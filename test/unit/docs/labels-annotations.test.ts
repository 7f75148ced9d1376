/** docs/reference/labels-annotations.md has each name of our group that code and chart have, and no other. */

import { expect, it } from 'vitest'
import { GROUP } from '../../../src/operator/names.ts'
import { listFiles, readText } from '../../support/documents.ts'

const textOf = (folder: string, end: RegExp) =>
  listFiles(folder)
    .filter((path) => end.test(path))
    .map(readText)
    .join('\n')
const namesIn = (text: string, group: string) =>
  new Set([...text.matchAll(new RegExp(`${group}/([a-z][a-z-]+)\\b`, 'g'))].map(([, name]) => name))

it('names of our group', () => {
  const ours = GROUP.replaceAll('.', '\\.')
  const code = namesIn(textOf('src/operator', /\.ts$/), '\\$\\{GROUP\\}')
  const chart = namesIn(textOf('charts/heartbeat-operator/templates', /(?<!heartbeatchecks)\.(?:yaml|tpl)$/), ours)
  expect(code.size).toBeGreaterThan(10)
  expect(chart.size).toBeGreaterThan(2)
  const documented = namesIn(readText('docs/reference/labels-annotations.md'), ours)
  expect([...documented].sort()).toEqual([...new Set([...code, ...chart])].sort())
})

it('names of the chart for others', () => {
  const text = readText('docs/reference/labels-annotations.md')
  const chart = textOf('charts/heartbeat-operator/templates', /\.(?:yaml|tpl)$/)
  for (const name of chart.match(/\b(?:checksum\/\w+|helm\.sh\/(?:chart|resource-policy))(?=:)/g)!)
    expect(text).toContain(name)
})
