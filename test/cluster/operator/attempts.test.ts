/** F4: what a stolen token of the controller can do, and what the API server rejects. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { type ApiAnswer, requestApi } from '../../../tools/cluster/control-plane-access.ts'
import { cluster } from '../../support/cluster.ts'
import { CHECKOUT, readText } from '../../support/documents.ts'
import { eventually } from '../../support/until.ts'
import { type Attempt, KINDS, type Kind, listAttempts, listChecks, listFixtures, type Owners } from './attempts.ts'
import {
  ACCOUNT,
  grantWithoutPolicy,
  INSTALLED,
  installPublisherRights,
  installRights,
  whenPolicyIsEnforced,
} from './stage.ts'

const DOCUMENT = 'docs/security/controller-token.md'
const POD = { restartPolicy: 'Never', containers: [{ name: 'job', image: 'registry.invalid/job:1' }] }
const GROUP = '/apis/heartbeat-operator.io/v1'

let namespace: string
let owners: Owners
/** Of the controller's account; and of one with the same rights, which no policy limits. */
let tokens: { readonly limited: string; readonly unlimited: string }

const objects = (kind: Kind, where = namespace) => `/api/v1/namespaces/${where}/${kind.toLowerCase()}s`
const ask = (path: string, token: string, method: string, body?: object) =>
  requestApi(cluster, method === 'GET' ? path : `${path}?dryRun=All`, { method, body, token })

beforeAll(async () => {
  await installRights()
  namespace = (await cluster.makeNamespace()).name
  tokens = {
    limited: await cluster.tokenFor(`${INSTALLED}/${ACCOUNT}`),
    unlimited: await cluster.tokenFor(await grantWithoutPolicy(namespace)),
  }
  const cronJob = {
    metadata: { name: 'made' },
    spec: { schedule: '0 2 * * *', suspend: true, jobTemplate: { spec: { template: { spec: POD } } } },
  }
  const made = await cluster.api('POST', `/apis/batch/v1/namespaces/${namespace}/cronjobs`, cronJob)
  const [a, b] = await Promise.all(
    listChecks(made.body.metadata.uid).map(async (check) => {
      const { status, body } = await cluster.api('POST', `${GROUP}/namespaces/${namespace}/heartbeatchecks`, check)
      expect(status, body.message).toBe(201)
      const { apiVersion, kind, metadata } = body
      return { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true, blockOwnerDeletion: false }
    }),
  )
  const { body: account } = await cluster.api('GET', `/api/v1/namespaces/${namespace}`)
  const other = { apiVersion: 'v1', kind: 'Namespace', name: namespace, uid: account.metadata.uid, controller: true }
  owners = { a: a!, b: b!, other }
  for (const kind of KINDS)
    for (const fixture of listFixtures(kind, owners)) {
      const { status, body } = await cluster.api('POST', objects(kind), fixture)
      expect(status, body.message).toBe(201)
    }
  await whenPolicyIsEnforced()
})

/** `allowed`, or the status and the reason. */
function word({ status, body }: ApiAnswer): string {
  if (status < 300) return 'allowed'
  const message: string = body.message
  const [, reason] = /denied request: (.*)$/.exec(message) ?? []
  if (reason !== undefined) return `${status}: ${reason}`
  if (message.includes('" cannot ')) return `${status}: no right`
  return `${status}: ${/field is immutable/.exec(message)?.[0] ?? message}`
}

async function attempt(
  { kinds = KINDS, method, path, name, body }: Attempt,
  kind: Kind,
  token: string,
): Promise<string | null> {
  if (!kinds.includes(kind)) return null
  const where = path?.(namespace) ?? `${objects(kind)}${name === undefined ? '' : `/${name}`}`
  return word(await ask(where, token, method, body?.(kind)))
}

const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [row(head), row(head.map(() => '---')).replaceAll(' ', ''), ...rows.map(row)].join('\n')

/** What the table in the document says; `ATTEMPTS=write` writes it. */
function expectInDocument(name: string, text: string): void {
  const [begin, end] = [`<!-- ${name}: begin -->\n`, `\n<!-- ${name}: end -->`]
  const document = readText(DOCUMENT)
  const [from, to] = [document.indexOf(begin) + begin.length, document.indexOf(end)]
  expect(from > begin.length && to > from, `${DOCUMENT} has a place for "${name}"`).toBe(true)
  if (process.env.ATTEMPTS === 'write')
    writeFileSync(join(CHECKOUT, DOCUMENT), document.slice(0, from) + text + document.slice(to))
  else expect(document.slice(from, to), 'ATTEMPTS=write writes the table').toBe(text)
}

it('F4: the API server answers what docs/security/controller-token.md says, to each attempt', async () => {
  const rows: string[][] = []
  for (const [on, attempts] of Object.entries(listAttempts(owners)))
    for (const [index, each] of attempts.entries()) {
      const cells: string[] = [index === 0 ? on : '', each.what]
      for (const token of [tokens.unlimited, tokens.limited]) {
        const answers = await Promise.all(KINDS.map((kind) => attempt(each, kind, token)))
        const [secret, configMap] = answers
        const isSame = secret === configMap || secret === null || configMap === null
        cells.push(isSame ? (secret ?? configMap)! : `Secret: ${secret}. ConfigMap: ${configMap}`)
      }
      rows.push(cells)
    }
  const reasons = [...new Set(rows.flatMap(([, , , limited]) => /^422: (the operator .*)$/.exec(limited!)?.[1] ?? []))]
  const numbered = rows.map((cells) =>
    cells.map((cell) => {
      const reason = reasons.findIndex((each) => cell === `422: ${each}`)
      return reason < 0 ? cell : `rejected: ${reason + 1}`
    }),
  )
  expectInDocument('attempts', table(['Of', 'Attempt', 'With the rights alone', 'With the policy'], numbered))
  expectInDocument(
    'reasons',
    table(
      ['Rejected', 'Reason of the policy'],
      reasons.map((reason, index) => [`${index + 1}`, reason]),
    ),
  )
})

it('F4: the policy asks of each type of object only for fields that it has', async () => {
  const path =
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/heartbeat-operator-heartbeat-operator-publishes'
  const { body } = await eventually('the policy was checked', async () => {
    const answer = await cluster.api('GET', path)
    return answer.body.status?.observedGeneration === answer.body.metadata.generation && answer
  })
  expect(body.status.typeChecking?.expressionWarnings ?? []).toEqual([])
})

it('F4: with rbac.secrets: namespaces, the account reads and writes Secrets only where it was let in', async () => {
  const { account, role } = await installPublisherRights((await cluster.makeNamespace()).name)
  const token = await cluster.tokenFor(account.replace(':', '/'))
  const bound = (await cluster.makeNamespace()).name
  await cluster.kubectl(
    ...['create', 'rolebinding', 'heartbeat-operator-publisher', '-n', bound],
    ...[`--clusterrole=${role}`, `--serviceaccount=${account}`],
  )
  const rows: string[][] = []
  for (const [what, method] of [
    ['read one, by name', 'GET'],
    ['create one', 'POST'],
    ['change one', 'PATCH'],
    ['delete one', 'DELETE'],
  ] as const) {
    const answers: string[] = []
    for (const where of [bound, namespace])
      for (const kind of KINDS) {
        await cluster.api('POST', objects(kind, where), { metadata: { name: 'there' } })
        const path = objects(kind, where) + (method === 'POST' ? '' : '/there')
        const body = { GET: undefined, DELETE: undefined, PATCH: {}, POST: { metadata: { name: 'new' } } }[method]
        answers.push(word(await ask(path, token, method, body)))
      }
    const [here, , elsewhere] = answers
    expect(answers).toEqual([here, here, elsewhere, elsewhere])
    rows.push([what, here!, elsewhere!])
  }
  expectInDocument('namespaces', table(['Secrets and ConfigMaps', 'where it is bound', 'elsewhere'], rows))
})
