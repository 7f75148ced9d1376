/** The alerts, judged by promtool, and what each of them must have. */

import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { findPrometheus } from '../../tools/programs/prometheus-program.ts'
import { RULES_FILE, readRules } from './read-rules.ts'

const CASES = fileURLToPath(new URL('./rules/', import.meta.url))
const RUNBOOKS = fileURLToPath(new URL('../../docs/operate/alerts.md', import.meta.url))
const RUNBOOK_BASE = 'https://github.com/heartbeat-operator/heartbeat-operator/blob/main/docs/operate/alerts.md#'

interface CaseFile {
  readonly tests: readonly {
    readonly alert_rule_test?: readonly { readonly alertname: string; readonly exp_alerts?: readonly unknown[] }[]
  }[]
}

const files = readdirSync(CASES)
const cases = files
  .flatMap((file) => (parse(readFileSync(`${CASES}${file}`, 'utf8')) as CaseFile).tests)
  .flatMap((test) => test.alert_rule_test ?? [])
const rules = readRules()
const names = rules.map(({ alert }) => alert)

let promtool: string
beforeAll(async () => {
  promtool = (await findPrometheus()).promtool
}, 300_000)

/** Returns the output of promtool; throws for an exit status other than 0. */
const run = async (...args: string[]) => {
  const { stdout, stderr } = await promisify(execFile)(promtool, args).catch((error) => error)
  return `${stdout}${stderr}`
}

describe('promtool', () => {
  it('finds no fault in the rules', async () => {
    expect(await run('check', 'rules', RULES_FILE)).toContain(`SUCCESS: ${rules.length} rules found`)
  })

  it.each(files)('sees fire and resolve what should, by the cases of %s', async (file) => {
    expect(await run('test', 'rules', CASES + file)).toMatch(/^Unit Testing: .*\n {2}SUCCESS\s*$/)
  })

  it('has a case of each alert in which it fires, and one in which it does not', () => {
    const namesOf = (isFiring: boolean) =>
      cases.filter(({ exp_alerts = [] }) => exp_alerts.length > 0 === isFiring).map(({ alertname }) => alertname)
    expect([...new Set(namesOf(true))].sort()).toEqual([...names].sort())
    expect([...new Set(namesOf(false))].sort()).toEqual([...names].sort())
  })
})

describe('each alert', () => {
  it('has a name of its own', () => {
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
  })

  it.each(rules)('$alert says how bad it is, what it means, and where to read on', (rule) => {
    expect(rule).toEqual({
      alert: expect.stringMatching(/^Heartbeat[A-Z]\w+$/),
      expr: expect.any(String),
      for: expect.stringMatching(/^\d+[sm]$/),
      labels: { severity: expect.stringMatching(/^(critical|warning|info)$/) },
      annotations: {
        summary: expect.any(String),
        description: expect.stringMatching(/\.$/),
        runbook_url: `${RUNBOOK_BASE}${rule.alert.toLowerCase()}`,
      },
    })
  })

  it.each(rules)('$alert asks for no value of a label that scraping sets', ({ expr }) => {
    expect(expr).not.toMatch(/\b(job|instance|pod|service|endpoint|container)\s*[=!]~?/)
  })

  it('about a check goes on in the same way while another replica takes over', () => {
    const series = /heartbeat_check_\w+\{(?:reason|status)="\w+"\}/
    const shapes = rules
      .filter(({ expr }) => series.test(expr))
      .map(({ alert, expr }) => expr.replace(series, 'SERIES').replace(alert, 'ALERT'))
    expect(shapes).toHaveLength(4)
    expect(new Set(shapes).size).toBe(1)
  })

  it('has a runbook, and no runbook is of an alert that there is not', () => {
    const headings = readFileSync(RUNBOOKS, 'utf8').matchAll(/^### (.+)$/gm)
    expect([...headings].map(([, heading]) => heading)).toEqual(names)
  })

  it('has a row in the table of the runbooks, in their order', () => {
    const rows = readFileSync(RUNBOOKS, 'utf8').matchAll(/^\| \[(\w+)\]\(#(\w+)\) \| (\w+) \| ./gm)
    expect([...rows].map(([, ...cells]) => cells)).toEqual(
      rules.map(({ alert, labels }) => [alert, alert.toLowerCase(), labels.severity]),
    )
  })

  it.each(rules)('$alert is as bad in its runbook as in the rules', ({ alert, labels, for: held }) => {
    const [, first] = new RegExp(`^### ${alert}\\n\\n(.+)`, 'm').exec(readFileSync(RUNBOOKS, 'utf8')) ?? []
    expect(first).toMatch(new RegExp(`^\`${labels.severity}\`, ${held === '0s' ? 'at once' : `after ${held}`}\\. `))
  })
})
