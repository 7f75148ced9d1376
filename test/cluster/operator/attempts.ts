/**
 * What a holder of the controller's token tries: with rights alone some of it would succeed. Each attempt is one request, sent as a dry run, so that
 * its answer is the API server's and changes nothing. The table of the answers is in docs/security/controller-token.md.
 */

export type Kind = 'Secret' | 'ConfigMap'
export const KINDS: readonly Kind[] = ['Secret', 'ConfigMap']

/** An object that is there before the attempts, and was written by others than the controller's account. */
export interface Fixture {
  readonly metadata: { readonly name: string } & Record<string, unknown>
  readonly type?: string
  readonly data?: Readonly<Record<string, string>>
}

export interface Attempt {
  readonly what: string
  /** On these kinds; default both. */
  readonly kinds?: readonly Kind[]
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Of something that is neither Secret nor ConfigMap; then `kinds` is one of them, so that it is tried once. */
  readonly path?: (namespace: string) => string
  /** The object, or for POST the namespace alone. */
  readonly name?: string
  readonly body?: Body
}

type Body = (kind: Kind) => object

const URL_VALUE = 'http://ping.example.com/ping/0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10'
const OURS = { 'app.kubernetes.io/managed-by': 'heartbeat-operator', 'heartbeat-operator.io/check': 'a' }
const OF_B = { 'heartbeat-operator.io/check': 'b' }
const HANDED_OVER = { 'heartbeat-operator.io/adopt': 'true' }
const TOKEN = 'kubernetes.io/service-account-token'
const OF_DEFAULT = { 'kubernetes.io/service-account.name': 'default' }

const encodeFor = (kind: Kind, text: string) => (kind === 'Secret' ? Buffer.from(text).toString('base64') : text)
const holding = (kind: Kind, text = URL_VALUE) => ({ HEARTBEAT_URL: encodeFor(kind, text) })

export interface Owners {
  /** Of HeartbeatCheck a, which is there. */
  readonly a: object
  readonly b: object
  /** Of a Deployment. */
  readonly other: object
}

export function listFixtures(kind: Kind, { a }: Owners): readonly Fixture[] {
  const data = holding(kind)
  const plain: Fixture[] = [
    { metadata: { name: 'own', labels: OURS, ownerReferences: [a] }, data },
    { metadata: { name: 'ownerless', labels: OURS }, data },
    {
      metadata: {
        name: 'mislabelled',
        labels: { ...OURS, ...OF_B },
        annotations: { 'heartbeat-operator.io/check-name': 'b'.repeat(64) },
        ownerReferences: [a],
      },
      data,
    },
    { metadata: { name: 'given-back', annotations: HANDED_OVER }, data },
    { metadata: { name: 'unlabelled', ownerReferences: [a] }, data },
    { metadata: { name: 'foreign' }, data: { password: encodeFor(kind, 'x') } },
    { metadata: { name: 'handed-over', annotations: HANDED_OVER }, data: { note: encodeFor(kind, 'of a person') } },
    {
      metadata: { name: 'shared', labels: { 'heartbeat-operator.io/check': 'a' } },
      data: { ...data, note: encodeFor(kind, 'of a person') },
    },
  ]
  if (kind === 'ConfigMap') return plain
  const pair = { 'tls.crt': '', 'tls.key': '' }
  return [
    ...plain,
    { metadata: { name: 'token', annotations: { ...HANDED_OVER, ...OF_DEFAULT } }, type: TOKEN },
    { metadata: { name: 'pair', annotations: HANDED_OVER }, type: 'kubernetes.io/tls', data: pair },
  ]
}

const LABELS = { 'app.kubernetes.io/managed-by': 'heartbeat-operator' }
const ADOPT_CHECK = { 'heartbeat-operator.io/adopt-check-id': '0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10' }
const TIMES = { graceSeconds: 60, maxRuntimeSeconds: 60 }
const CRON_JOB = {
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  name: 'c',
  uid: 'x',
  controller: true,
  blockOwnerDeletion: false,
}

const check = (metadata: object, spec: object) => ({
  apiVersion: 'heartbeat-operator.io/v1',
  kind: 'HeartbeatCheck',
  metadata,
  spec,
})
const follow = (name: string) => ({ sourceRef: { kind: 'CronJob', name } })
/** As the operator makes it for the CronJob c, but for these metadata. */
const makeCheck = (metadata: object) =>
  check({ name: 'c', labels: LABELS, ownerReferences: [CRON_JOB], ...metadata }, follow('c'))
const MADE = makeCheck({})

/** HeartbeatChecks that are there before the attempts: of people, and one that the operator made for the CronJob of this uid. */
export const listChecks = (cronJobUid: string) => [
  check({ name: 'a' }, { periodSeconds: 60 }),
  check({ name: 'b' }, { periodSeconds: 60 }),
  check(
    { name: 'made', labels: LABELS, ownerReferences: [{ ...CRON_JOB, name: 'made', uid: cronJobUid }] },
    { ...follow('made'), description: 'x' },
  ),
  check({ name: 'ownerless', labels: LABELS }, follow('ownerless')),
  check({ name: 'followed' }, follow('followed')),
  check({ name: 'labelled', labels: LABELS }, { periodSeconds: 60 }),
]

export function listAttempts({ a, b, other }: Owners): Readonly<Record<string, readonly Attempt[]>> {
  const change = (metadata: object) => () => ({ metadata })
  const write = (kind: Kind) => ({ data: holding(kind, `${URL_VALUE}0`) })
  const read = (what: string, name?: string): Attempt => ({ what, method: 'GET', ...(name && { name }) })
  const create = (what: string, body: Body, kinds = KINDS): Attempt => ({ what, method: 'POST', body, kinds })
  const patch = (what: string, name: string, body: Body, kinds = KINDS): Attempt => ({
    ...create(what, body, kinds),
    method: 'PATCH',
    name,
  })
  const remove = (what: string, name: string): Attempt => ({ what, method: 'DELETE', name })
  const secret: readonly Kind[] = ['Secret']
  const configMap: readonly Kind[] = ['ConfigMap']
  const owned = { labels: OURS, ownerReferences: [a] }
  return {
    'what it published': [
      create('create it', (kind) => ({ metadata: { name: 'new', ...owned }, data: holding(kind) })),
      read('read it', 'own'),
      patch('write another URL', 'own', write),
      patch('restore its owner reference', 'ownerless', change({ ownerReferences: [a] })),
      patch(
        'give it back: without owner and labels',
        'own',
        change({ ownerReferences: null, labels: null, annotations: HANDED_OVER }),
      ),
      remove('delete it', 'own'),
      patch('hand it to another HeartbeatCheck', 'own', change({ ownerReferences: [b] })),
      patch('take its owner away', 'own', change({ ownerReferences: null })),
      patch('then give it to another HeartbeatCheck', 'ownerless', change({ ownerReferences: [b] })),
      patch('then label it for another HeartbeatCheck', 'ownerless', change({ labels: OF_B })),
      patch(
        'then label it for another HeartbeatCheck, and give it to that one',
        'ownerless',
        change({ labels: OF_B, ownerReferences: [b] }),
      ),
      patch(
        'then name another HeartbeatCheck in its annotation',
        'ownerless',
        change({ annotations: { 'heartbeat-operator.io/check-name': 'b'.repeat(64) } }),
      ),
      patch('label it for another HeartbeatCheck', 'own', change({ labels: OF_B })),
      patch('correct its label and its annotation', 'mislabelled', change({ labels: OURS, annotations: null })),
      patch('add a finalizer', 'own', change({ finalizers: ['example.com/stay'] })),
      patch('make it immutable', 'own', () => ({ immutable: true })),
      patch('change its type', 'own', () => ({ type: TOKEN }), secret),
      patch('write a configuration', 'own', () => ({ data: { Corefile: '.:53 { forward . 192.0.2.1 }' } }), configMap),
      patch('write binary data', 'own', () => ({ binaryData: { x: 'AAAA' } }), configMap),
    ],
    'one of these without our label': [
      patch('write another URL', 'unlabelled', write),
      remove('delete it', 'unlabelled'),
    ],
    'what is of others': [
      read('read it, by name', 'foreign'),
      read('list all'),
      patch('change it', 'foreign', write),
      patch('label and own it first', 'foreign', change(owned)),
      patch('annotate it as handed over', 'foreign', change({ annotations: HANDED_OVER })),
      remove('delete it', 'foreign'),
    ],
    'what was handed over': [
      patch('write a URL', 'handed-over', (kind) => ({
        metadata: { labels: { 'heartbeat-operator.io/check': 'a' } },
        ...write(kind),
      })),
      patch('own it, so that it goes with a HeartbeatCheck', 'handed-over', (kind) => ({
        metadata: owned,
        ...write(kind),
      })),
      patch('label it as created by the operator', 'handed-over', change({ labels: LABELS })),
      remove('delete it', 'handed-over'),
      patch('write another URL where it wrote one before', 'shared', write),
      patch('take its URL and its label out again', 'shared', () => ({
        metadata: { labels: null },
        data: { HEARTBEAT_URL: null },
      })),
      patch('then own it', 'shared', change({ ownerReferences: [a] })),
      patch('label it for another HeartbeatCheck', 'shared', change({ labels: OF_B })),
      patch(
        'give what was given back to another HeartbeatCheck',
        'given-back',
        change({ labels: { ...OURS, ...OF_B }, ownerReferences: [b] }),
      ),
      patch('write a URL into one of the type `kubernetes.io/tls`', 'pair', write, secret),
      patch(
        'name another account in a token',
        'token',
        change({ annotations: { 'kubernetes.io/service-account.name': 'deployer' } }),
        secret,
      ),
    ],
    'new objects': [
      create('without an owner', (kind) => ({ metadata: { name: 'new', labels: OURS }, data: holding(kind) })),
      create('of another owner', (kind) => ({
        metadata: { name: 'new', ownerReferences: [other] },
        data: holding(kind),
      })),
      create(
        'of the type `kubernetes.io/service-account-token`',
        () => ({ metadata: { name: 'new', annotations: OF_DEFAULT, ...owned }, type: TOKEN }),
        secret,
      ),
      create(
        'of the type `kubernetes.io/tls`',
        () => ({
          metadata: { name: 'new', ...owned },
          type: 'kubernetes.io/tls',
          data: { 'tls.crt': '', 'tls.key': '' },
        }),
        secret,
      ),
      create(
        'with a configuration, such as `aws-auth`',
        () => ({
          metadata: { name: 'aws-auth', ...owned },
          data: { mapRoles: '- {rolearn: x, username: x, groups: ["system:masters"]}' },
        }),
        configMap,
      ),
    ],
    'a HeartbeatCheck': [
      onCheck('list all', 'GET', ''),
      onCheck('change its finalizers', 'PATCH', '/a', { metadata: { finalizers: ['heartbeat-operator.io/cleanup'] } }),
      onCheck('store it anew, unchanged', 'PATCH', '/a', {}),
      onCheck('write its status', 'PATCH', '/a/status', { status: { state: 'up' } }),
      onCheck('silence it: `spec.suspend`', 'PATCH', '/a', { spec: { suspend: true } }),
      onCheck('point it at another Secret', 'PATCH', '/a', { spec: { publish: { name: 'other' } } }),
      onCheck('relabel it', 'PATCH', '/a', { metadata: { labels: { team: 'x' } } }),
      onCheck('annotate it', 'PATCH', '/a', { metadata: { annotations: { 'heartbeat-operator.io/take-over': 'x' } } }),
      onCheck('give it an owner that is gone', 'PATCH', '/a', {
        metadata: { ownerReferences: [{ ...other, uid: 'x' }] },
      }),
      createCheck('create one', check({ name: 'c' }, { periodSeconds: 60 })),
      onCheck('delete it', 'DELETE', '/a'),
    ],
    'a HeartbeatCheck of a CronJob': [
      createCheck('create it', MADE),
      createCheck(
        'create it with what the annotations of the CronJob ask for',
        check(MADE.metadata, { ...MADE.spec, project: 'x', displayName: 'X', description: 'x', ...TIMES }),
      ),
      createCheck('create it for a CronJob of another name', check(MADE.metadata, follow('another'))),
      createCheck('create it without an owner', check({ ...MADE.metadata, ownerReferences: [] }, MADE.spec)),
      createCheck(
        'create it with another owner too',
        makeCheck({ ownerReferences: [CRON_JOB, { ...a, controller: false }] }),
      ),
      createCheck('create it with a HeartbeatCheck as its owner', makeCheck({ ownerReferences: [a] })),
      createCheck(
        'create it with a CronJob of another name as its owner',
        makeCheck({ ownerReferences: [{ ...CRON_JOB, name: 'another' }] }),
      ),
      createCheck('create it without our label', makeCheck({ labels: {} })),
      createCheck('create it with a label more', makeCheck({ labels: { ...LABELS, team: 'x' } })),
      createCheck('create it and take over the check of another one', makeCheck({ annotations: ADOPT_CHECK })),
      createCheck('create it with a finalizer of others', makeCheck({ finalizers: ['example.com/stay'] })),
      createCheck(
        'create it and publish its URL',
        check(MADE.metadata, { ...MADE.spec, publish: { kind: 'Secret', name: 'x' } }),
      ),
      createCheck(
        'create it so that its check stays',
        check(MADE.metadata, { ...MADE.spec, deletionPolicy: 'Retain' }),
      ),
      onCheck('change its grace time', 'PATCH', '/made', { spec: { graceSeconds: 60 } }),
      onCheck('change its texts and its maximum run time', 'PATCH', '/made', {
        spec: { displayName: 'X', description: null, maxRuntimeSeconds: 60 },
      }),
      onCheck('give it to a CronJob that was created again', 'PATCH', '/made', {
        metadata: { ownerReferences: [{ ...CRON_JOB, name: 'made', uid: 'y' }] },
      }),
      onCheck('take its owner away', 'PATCH', '/made', { metadata: { ownerReferences: null } }),
      onCheck('publish its URL', 'PATCH', '/made', { spec: { publish: { kind: 'Secret', name: 'x' } } }),
      onCheck('relabel it', 'PATCH', '/made', { metadata: { labels: { 'app.kubernetes.io/managed-by': null } } }),
      onCheck('delete it', 'DELETE', '/made'),
      onCheck('delete one that follows a CronJob, and is of a person', 'DELETE', '/followed'),
      onCheck('delete one that no CronJob owns', 'DELETE', '/ownerless'),
      onCheck('delete one that has our label, and follows no CronJob', 'DELETE', '/labelled'),
    ],
    'the rest of the cluster': [
      on('read a Namespace', 'GET', (namespace) => `/api/v1/namespaces/${namespace}`),
      on('annotate a Namespace with projects', 'PATCH', (namespace) => `/api/v1/namespaces/${namespace}`, {
        metadata: { annotations: { 'heartbeat-operator.io/projects': 'payments' } },
      }),
      on(
        'read the CustomResourceDefinition of HeartbeatCheck',
        'GET',
        () => `${DEFINITIONS}/heartbeatchecks.heartbeat-operator.io`,
      ),
      on('change its schema', 'PATCH', () => `${DEFINITIONS}/heartbeatchecks.heartbeat-operator.io`, {}),
      on('list pods', 'GET', (namespace) => `/api/v1/namespaces/${namespace}/pods`),
      on('read a pod', 'GET', (namespace) => `/api/v1/namespaces/${namespace}/pods/x`),
      on('read the log of a pod', 'GET', (namespace) => `/api/v1/namespaces/${namespace}/pods/x/log`),
      on('delete a pod', 'DELETE', (namespace) => `/api/v1/namespaces/${namespace}/pods/x`),
      on('list Jobs', 'GET', (namespace) => `/apis/batch/v1/namespaces/${namespace}/jobs`),
      on('create a Job', 'POST', (namespace) => `/apis/batch/v1/namespaces/${namespace}/jobs`, {}),
      on('change a CronJob', 'PATCH', (namespace) => `/apis/batch/v1/namespaces/${namespace}/cronjobs/x`, {}),
      on(
        'change its own rights',
        'PATCH',
        () => `${RBAC}/clusterroles/heartbeat-operator-heartbeat-operator-controller`,
        {},
      ),
      on(
        'remove the policy',
        'DELETE',
        () => `${ADMISSION}/validatingadmissionpolicies/heartbeat-operator-heartbeat-operator-publishes`,
      ),
    ],
  }
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const ADMISSION = '/apis/admissionregistration.k8s.io/v1'
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

function on(what: string, method: Attempt['method'], path: (namespace: string) => string, body?: object): Attempt {
  return { what, kinds: ['Secret'], method, path, ...(body === undefined ? {} : { body: () => body }) }
}

const onCheck = (what: string, method: Attempt['method'], rest: string, body?: object) =>
  on(what, method, (namespace) => `/apis/heartbeat-operator.io/v1/namespaces/${namespace}/heartbeatchecks${rest}`, body)
const createCheck = (what: string, object: object) => onCheck(what, 'POST', '', object)
