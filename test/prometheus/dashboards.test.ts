/** The dashboards, as Grafana would stumble over them. That their queries answer is held by prometheus.test.ts. */

import { describe, expect, it } from 'vitest'
import { metricsOf, type Panel, readDashboards } from './read-dashboards.ts'

const dashboards = readDashboards()
const DATASOURCE = `\${datasource}`

const shownPanels = (panels: readonly Panel[]) => panels.filter(({ type }) => type !== 'row')
const areApart = ({ gridPos: a }: Panel, { gridPos: b }: Panel) =>
  a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y

it('there are three, each with an address of its own that links can rely on', () => {
  expect(dashboards.map(({ file, uid }) => [file, uid])).toEqual([
    ['check.json', 'heartbeat-check'],
    ['operator.json', 'heartbeat-operator'],
    ['overview.json', 'heartbeat-overview'],
  ])
})

it('a link from one leads to one that there is, with variables that it has', () => {
  const links = dashboards.flatMap(({ text }) => [...text.matchAll(/"\/d\/([\w-]+)\?([^"]*)"/g)])
  expect(links).not.toEqual([])
  for (const [, uid, query] of links) {
    const given = [...query!.matchAll(/var-(\w+)=/g)].map(([, name]) => name)
    const known = dashboards.find((dashboard) => dashboard.uid === uid)?.templating.list.map(({ name }) => name)
    expect(known).toEqual(expect.arrayContaining(given))
  }
})

describe.each(dashboards)('$file', ({ id, title, schemaVersion, panels, templating, text }) => {
  it('can be imported by any Grafana from version 10 on: they hold no id and no data source of another Grafana', () => {
    expect({ id, schemaVersion }).toEqual({ id: undefined, schemaVersion: 39 })
    expect(title).toMatch(/^Heartbeat \/ /)
    const ours = /"datasource": \{\s*"type": "prometheus",\s*"uid": "\$\{datasource\}"\s*\}/g
    expect(text.match(ours)?.length).toBe(text.match(/"datasource":/g)!.length)
    expect(templating.list[0]).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' })
  })

  it('has panels with ids of their own that do not lie on each other', () => {
    expect(new Set(panels.map((panel) => panel.id)).size).toBe(panels.length)
    for (const [index, panel] of panels.entries()) {
      expect(panel.gridPos.x + panel.gridPos.w).toBeLessThanOrEqual(24)
      expect(panels.slice(index + 1).filter((other) => !areApart(panel, other))).toEqual([])
    }
  })

  it('uses the variables that it has, and no others', () => {
    const own = templating.list.map(({ name }) => name).sort()
    const used = [...text.matchAll(/\$(\w+)|\$\{(\w+)(?::\w+)?\}/g)].map(([, plain, braced]) => plain ?? braced!)
    const ofGrafana = ['__all', '__rate_interval']
    expect([...new Set(used)].filter((name) => !ofGrafana.includes(name)).sort()).toEqual(own)
  })

  it.each(shownPanels(panels))('$title says what it shows, in which unit, and asks for something', (panel) => {
    expect(panel).toMatchObject({ description: expect.stringMatching(/\.$/), datasource: { uid: DATASOURCE } })
    expect(panel.fieldConfig?.defaults.unit).toMatch(/^\w+$/)
    const refs = panel.targets?.map(({ refId }) => refId) ?? []
    expect(refs).not.toEqual([])
    expect(new Set(refs).size).toBe(refs.length)
    for (const { expr } of panel.targets ?? []) expect(metricsOf(expr)).not.toEqual([])
  })
})

describe('the names of metrics in an expression', () => {
  it.each([
    ['max(heartbeat_checks{job=~"$job", status="up"})', ['heartbeat_checks']],
    ['sum by (le, route) (rate(a_seconds_bucket{x="y_z"}[$__rate_interval])) / b:c', ['a_seconds_bucket', 'b:c']],
    ['time() - max by (a) (last_seconds) > 600 unless on () up offset 15m == 1', ['last_seconds', 'up']],
    ['(a_total or increase(b_total[15m])) > 1e3', ['a_total', 'b_total']],
    ['vector(1)', []],
  ])('%s', (expr, names) => {
    expect(metricsOf(expr)).toEqual(names)
  })
})
