/** The rule file of the chart, as tests read it. */

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'

export interface AlertRule {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly labels: { readonly severity: string }
  readonly annotations: Readonly<Record<string, string>>
}

export const RULES_FILE = fileURLToPath(new URL('../../charts/heartbeat-operator/files/rules.yaml', import.meta.url))

/** In their order. */
export function readRules(): readonly AlertRule[] {
  const { groups } = parse(readFileSync(RULES_FILE, 'utf8')) as { groups: { rules: AlertRule[] }[] }
  return groups.flatMap(({ rules }) => rules)
}

/** The rules for a Prometheus that scrapes and evaluates once a second: what is a minute in them is a second here. */
export function readFastRules(): string {
  const hasten = (text: string) => text.replaceAll(/\b(\d+)m\b/g, '$1s').replaceAll(/\b(\d+)h\b/g, '$1m')
  const rules = readRules().map((rule) => ({ ...rule, expr: hasten(rule.expr), for: hasten(rule.for) }))
  return stringify({ groups: [{ name: 'fast', rules }] })
}
