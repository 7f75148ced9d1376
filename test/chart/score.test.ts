/** The chart as kube-score judges it: no finding but those that are explained here, and no explanation without a finding. */

import { execFile } from 'node:child_process'
import { expect, it } from 'vitest'
import { findTool } from '../../tools/programs/tools.ts'
import { CASES, EACH_CASE } from './cases.ts'
import { renderText, type Values } from './chart.ts'

const KUBE_SCORE = await findTool('kube-score')
/** Of kube-score's grades: everything below is a finding. */
const FINE = 10

/** A finding is a check, and what it is about: an object, and the container or what is said where there is one. */
const EXPLAINED: Record<string, string> = {
  'container-resources *':
    'A limit of CPU makes a container wait while the node idles, and pings late with it; requests say what it needs. Memory, which cannot wait, is limited.',
  'container-image-pull-policy *':
    'Tags of releases do not move, and a digest cannot: a pod must be able to start again while the registry is away. image.pullPolicy changes it.',
  'deployment-has-host-podantiaffinity *':
    'topologySpreadConstraints do it, and count the pods of the new version only.',
  'statefulset-has-servicename *':
    'No client uses the name of the one PostgreSQL pod, and a headless Service has no name while the pod is not ready.',
  'pod-networkpolicy heartbeat-test':
    'The pod of `helm test` calls two Services and is gone; what may leave a namespace is for its owner to say.',
  'pod-networkpolicy heartbeat-uninstall':
    'The Job of the uninstallation calls the API server and is gone, after the policies of the release themselves.',
  'container-security-context-user-group-id heartbeat-postgresql':
    'The user and group of the official image are 999: it cannot make its files as another.',
}

interface Finding {
  readonly check: string
  readonly object: string
  readonly words: string
}

async function score(values: Values): Promise<readonly Finding[]> {
  const yaml = await renderText(values)
  const args = ['score', '--output-format', 'json', '--kubernetes-version', 'v1.33', '-']
  const text = await new Promise<string>((resolve, reject) => {
    const child = execFile(KUBE_SCORE, args, { maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) => {
      // 1 says that there are findings.
      if (error !== null && error.code !== 1) reject(new Error(`kube-score failed: ${stderr}`, { cause: error }))
      else resolve(stdout)
    })
    child.stdin?.on('error', () => {}) // it may end without reading
    child.stdin?.end(yaml)
  })
  const scored = JSON.parse(text) as {
    object_meta: { name: string }
    checks: {
      check: { id: string }
      grade: number
      skipped: boolean
      comments: { path: string; summary: string }[] | null
    }[]
  }[]
  expect(scored.length).toBeGreaterThan(5)
  return scored.flatMap(({ object_meta, checks }) =>
    checks
      .filter(({ grade, skipped }) => grade < FINE && !skipped)
      .map(({ check, comments }) => ({
        check: check.id,
        object: object_meta.name,
        words: (comments ?? []).map(({ path, summary }) => `${path} ${summary}`).join('; '),
      })),
  )
}

const explain = ({ check, object }: Finding) => [`${check} *`, `${check} ${object}`].find((key) => key in EXPLAINED)

/** Policies and budgets are there, and two pods of each: what kube-score asks for in every installation. */
const GUARDED: Values = { networkPolicy: { enabled: true, egress: { enabled: true } } }

it('finds nothing in an installation with policies that is not explained', async () => {
  const findings = await score(GUARDED)
  expect(findings.filter((finding) => explain(finding) === undefined)).toEqual([])
  expect([...new Set(findings.map(explain))].sort()).toEqual(Object.keys(EXPLAINED).sort())
})

it('says of resources and privileges nothing but that', async () => {
  const findings = await score(GUARDED)
  const words = findings.filter(({ check }) => check.startsWith('container-')).map((finding) => finding.words)
  expect([...new Set(words.map((text) => text.replace(/^\w+ /, '').replace(/; \w+ /, '; ')))].sort()).toEqual([
    'CPU limit is not set',
    'ImagePullPolicy is not set to Always',
    'The container is running with a low user ID; The container running with a low group ID',
  ])
})

it('misses in the installation without values only the policies, which are to be asked for', async () => {
  const findings = (await score({})).filter((finding) => explain(finding) === undefined)
  expect([...new Set(findings.map(({ check }) => check))]).toEqual(['pod-networkpolicy'])
})

it.each(EACH_CASE.filter(([name]) => name !== 'least'))(
  'finds nothing new with the values of "%s"',
  async (_, values) => {
    const known = new Set(Object.keys(EXPLAINED).map((key) => key.split(' ')[0]))
    // The api with volumes of its own, which is spread as its Deployment is.
    known.add('statefulset-has-host-podantiaffinity')
    const findings = await score({ ...values, ...GUARDED })
    expect(findings.filter(({ check }) => !known.has(check))).toEqual([])
  },
)

it('reports a Deployment of one pod', async () => {
  const checks = new Set((await score(CASES.least)).map(({ check }) => check))
  expect(checks).toContain('deployment-replicas')
})
