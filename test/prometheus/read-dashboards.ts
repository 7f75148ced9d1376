/** The Grafana dashboards of the chart, as tests read them. */

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Target {
  readonly refId: string
  readonly expr: string
  readonly instant?: boolean
  readonly datasource: { readonly uid: string }
}

export interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly datasource?: { readonly uid: string }
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly fieldConfig?: {
    readonly defaults: { readonly unit?: string }
    readonly overrides: readonly { readonly properties: readonly { readonly id: string; readonly value: unknown }[] }[]
  }
  readonly targets?: readonly Target[]
}

export interface Variable {
  readonly name: string
  readonly type: string
  readonly query: string | { readonly query: string }
}

export interface Dashboard {
  /** Name of its file. */
  readonly file: string
  /** As it stands there. */
  readonly text: string
  readonly id?: unknown
  readonly uid: string
  readonly title: string
  readonly schemaVersion: number
  readonly templating: { readonly list: readonly Variable[] }
  readonly panels: readonly Panel[]
}

const FOLDER = fileURLToPath(new URL('../../charts/heartbeat-operator/files/dashboards/', import.meta.url))

export const readDashboards = (): readonly Dashboard[] =>
  readdirSync(FOLDER).map((file) => {
    const text = readFileSync(FOLDER + file, 'utf8')
    return { file, text, ...(JSON.parse(text) as Omit<Dashboard, 'file' | 'text'>) }
  })

export interface Query {
  /** For people: where it stands. */
  readonly name: string
  readonly expr: string
  /** Of one moment; else over a time. */
  readonly isInstant: boolean
}

/** Every query of every panel. */
export const listQueries = (dashboards: readonly Dashboard[]): readonly Query[] =>
  dashboards.flatMap(({ file, panels }) =>
    panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ refId, expr, instant = false }) => ({
        name: `${file}: ${title} ${refId}`,
        expr,
        isInstant: instant,
      })),
    ),
  )

/** The names of the metrics that an expression asks for. */
export function metricsOf(expr: string): readonly string[] {
  const bare = expr
    .replaceAll(/"[^"]*"/g, '')
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replaceAll(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, '')
  const words = bare.matchAll(/(?<![\w:.])[a-zA-Z_:][\w:]*(?!\w*\s*\()/g)
  return [...new Set([...words].map(([word]) => word))].filter((word) => !KEYWORDS.has(word))
}

const KEYWORDS = new Set(['and', 'or', 'unless', 'bool', 'offset'])
