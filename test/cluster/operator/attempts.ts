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
  readonly body?: (kind: Kind) => object
}

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
  const create = (what: string, body: (kind: Kind) => object, kinds?: readonly Kind[]): Attempt => ({
    what,
    method: 'POST',
    body,
    ...(kinds === undefined ? {} : { kinds }),
  })
  const secret: readonly Kind[] = ['Secret']
  const configMap: readonly Kind[] = ['ConfigMap']
  const owned = { labels: OURS, ownerReferences: [a] }
  return {
    'what it published': [
      create('create it', (kind) => ({ metadata: { name: 'new', ...owned }, data: holding(kind) })),
      { what: 'read it', method: 'GET', name: 'own' },
      { what: 'write another URL', method: 'PATCH', name: 'own', body: write },
      {
        what: 'restore its owner reference',
        method: 'PATCH',
        name: 'ownerless',
        body: change({ ownerReferences: [a] }),
      },
      {
        what: 'give it back: without owner and labels',
        method: 'PATCH',
        name: 'own',
        body: change({ ownerReferences: null, labels: null, annotations: HANDED_OVER }),
      },
      { what: 'delete it', method: 'DELETE', name: 'own' },
      {
        what: 'hand it to another HeartbeatCheck',
        method: 'PATCH',
        name: 'own',
        body: change({ ownerReferences: [b] }),
      },
      { what: 'take its owner away', method: 'PATCH', name: 'own', body: change({ ownerReferences: null }) },
      {
        what: 'then give it to another HeartbeatCheck',
        method: 'PATCH',
        name: 'ownerless',
        body: change({ ownerReferences: [b] }),
      },
      {
        what: 'then label it for another HeartbeatCheck',
        method: 'PATCH',
        name: 'ownerless',
        body: change({ labels: OF_B }),
      },
      {
        what: 'then label it for another HeartbeatCheck, and give it to that one',
        method: 'PATCH',
        name: 'ownerless',
        body: change({ labels: OF_B, ownerReferences: [b] }),
      },
      {
        what: 'then name another HeartbeatCheck in its annotation',
        method: 'PATCH',
        name: 'ownerless',
        body: change({ annotations: { 'heartbeat-operator.io/check-name': 'b'.repeat(64) } }),
      },
      {
        what: 'label it for another HeartbeatCheck',
        method: 'PATCH',
        name: 'own',
        body: change({ labels: OF_B }),
      },
      {
        what: 'correct its label and its annotation',
        method: 'PATCH',
        name: 'mislabelled',
        body: change({ labels: OURS, annotations: null }),
      },
      { what: 'add a finalizer', method: 'PATCH', name: 'own', body: change({ finalizers: ['example.com/stay'] }) },
      { what: 'make it immutable', method: 'PATCH', name: 'own', body: () => ({ immutable: true }) },
      { what: 'change its type', kinds: secret, method: 'PATCH', name: 'own', body: () => ({ type: TOKEN }) },
      {
        what: 'write a configuration',
        kinds: configMap,
        method: 'PATCH',
        name: 'own',
        body: () => ({ data: { Corefile: '.:53 { forward . 192.0.2.1 }' } }),
      },
      {
        what: 'write binary data',
        kinds: configMap,
        method: 'PATCH',
        name: 'own',
        body: () => ({ binaryData: { x: 'AAAA' } }),
      },
    ],
    'one of these without our label': [
      { what: 'write another URL', method: 'PATCH', name: 'unlabelled', body: write },
      { what: 'delete it', method: 'DELETE', name: 'unlabelled' },
    ],
    'what is of others': [
      { what: 'read it, by name', method: 'GET', name: 'foreign' },
      { what: 'list all', method: 'GET' },
      { what: 'change it', method: 'PATCH', name: 'foreign', body: write },
      {
        what: 'label and own it first',
        method: 'PATCH',
        name: 'foreign',
        body: change(owned),
      },
      {
        what: 'annotate it as handed over',
        method: 'PATCH',
        name: 'foreign',
        body: change({ annotations: HANDED_OVER }),
      },
      { what: 'delete it', method: 'DELETE', name: 'foreign' },
    ],
    'what was handed over': [
      {
        what: 'write a URL',
        method: 'PATCH',
        name: 'handed-over',
        body: (kind) => ({ metadata: { labels: { 'heartbeat-operator.io/check': 'a' } }, ...write(kind) }),
      },
      {
        what: 'own it, so that it goes with a HeartbeatCheck',
        method: 'PATCH',
        name: 'handed-over',
        body: (kind) => ({ metadata: owned, ...write(kind) }),
      },
      {
        what: 'label it as created by the operator',
        method: 'PATCH',
        name: 'handed-over',
        body: change({ labels: LABELS }),
      },
      { what: 'delete it', method: 'DELETE', name: 'handed-over' },
      { what: 'write another URL where it wrote one before', method: 'PATCH', name: 'shared', body: write },
      {
        what: 'take its URL and its label out again',
        method: 'PATCH',
        name: 'shared',
        body: () => ({ metadata: { labels: null }, data: { HEARTBEAT_URL: null } }),
      },
      {
        what: 'then own it',
        method: 'PATCH',
        name: 'shared',
        body: change({ ownerReferences: [a] }),
      },
      {
        what: 'label it for another HeartbeatCheck',
        method: 'PATCH',
        name: 'shared',
        body: change({ labels: OF_B }),
      },
      {
        what: 'give what was given back to another HeartbeatCheck',
        method: 'PATCH',
        name: 'given-back',
        body: change({ labels: { ...OURS, ...OF_B }, ownerReferences: [b] }),
      },
      {
        what: 'write a URL into one of the type `kubernetes.io/tls`',
        kinds: secret,
        method: 'PATCH',
        name: 'pair',
        body: write,
      },
      {
        what: 'name another account in a token',
        kinds: secret,
        method: 'PATCH',
        name: 'token',
        body: change({ annotations: { 'kubernetes.io/service-account.name': 'deployer' } }),
      },
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
      onCheck('create one', 'POST', '', check({ name: 'c' }, { periodSeconds: 60 })),
      onCheck('delete it', 'DELETE', '/a'),
    ],
    'a HeartbeatCheck of a CronJob': [
      onCheck('create it', 'POST', '', MADE),
      onCheck(
        'create it with what the annotations of the CronJob ask for',
        'POST',
        '',
        check(MADE.metadata, { ...MADE.spec, project: 'x', displayName: 'X', description: 'x', ...TIMES }),
      ),
      onCheck('create it for a CronJob of another name', 'POST', '', check(MADE.metadata, follow('another'))),
      onCheck('create it without an owner', 'POST', '', check({ ...MADE.metadata, ownerReferences: [] }, MADE.spec)),
      onCheck(
        'create it with another owner too',
        'POST',
        '',
        makeCheck({ ownerReferences: [CRON_JOB, { ...a, controller: false }] }),
      ),
      onCheck('create it with a HeartbeatCheck as its owner', 'POST', '', makeCheck({ ownerReferences: [a] })),
      onCheck(
        'create it with a CronJob of another name as its owner',
        'POST',
        '',
        makeCheck({ ownerReferences: [{ ...CRON_JOB, name: 'another' }] }),
      ),
      onCheck('create it without our label', 'POST', '', makeCheck({ labels: {} })),
      onCheck('create it with a label more', 'POST', '', makeCheck({ labels: { ...LABELS, team: 'x' } })),
      onCheck('create it and take over the check of another one', 'POST', '', makeCheck({ annotations: ADOPT_CHECK })),
      onCheck('create it with a finalizer of others', 'POST', '', makeCheck({ finalizers: ['example.com/stay'] })),
      onCheck(
        'create it and publish its URL',
        'POST',
        '',
        check(MADE.metadata, { ...MADE.spec, publish: { kind: 'Secret', name: 'x' } }),
      ),
      onCheck(
        'create it so that its check stays',
        'POST',
        '',
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
