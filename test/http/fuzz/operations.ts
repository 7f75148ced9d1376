/** Good requests for every operation of the management API, to be spoiled. */

import { MANAGERS, SHOWN_STATUSES } from '../../../src/domain/check.ts'
import { CHECK_SORTS, type CheckSort } from '../../../src/domain/check-order.ts'
import type { TestApp } from '../../support/app.ts'
import type { Random } from '../../support/random.ts'

/** What requests are made of: it exists at the start of a run; some of it will be gone at its end. */
export interface Material {
  readonly projectId: string
  readonly emptyProjectIds: readonly string[]
  readonly checkIds: readonly string[]
  readonly apiKeyIds: readonly string[]
  readonly channelIds: readonly string[]
  readonly deliveryIds: readonly string[]
  readonly userIds: readonly string[]
  readonly cursors: readonly string[]
  /** Cursors of lists of checks, by their orders. */
  readonly places: readonly (readonly [sort: CheckSort, cursor: string])[]
  readonly logIn: { readonly email: string; readonly password: string }
  readonly refreshTokens: readonly string[]
}

export interface Operation {
  readonly method: string
  /** Path below {base_url}, in parts. */
  readonly path: readonly string[]
  readonly query?: Readonly<Record<string, string>> | undefined
  readonly body?: unknown
}

const SCHEDULES = ['*/5 * * * *', '@hourly', '0 2 31 2 *', '60 * * * *', '* * * *', '1-0 * * * *', '*/0 * * * *', 'TZ=UTC * * * * *', '0 0 ? * MON#1', '@every 1s', '0 0 L * *', '* * * * * *', '0 0 * * 7', '59 23 31 12 SUN'] // biome-ignore format: a list
const TIME_ZONES = [
  'UTC',
  'Europe/Berlin',
  'Local',
  '',
  'utc',
  'GMT+25',
  '+01:00',
  '../../etc/passwd',
  'constructor',
  'America/Sao_Paulo',
]

const URLS = [
  'https://hook.invalid/hook',
  'https://u:p@hook.invalid/?x=1',
  'http://[::1]:1/',
  'https://hook.invalid/?…',
  'http://127.1/',
]
const CONFIGS = [
  (random: Random) => ({ kind: 'webhook', config: { url: random.pick(URLS) } }),
  (random: Random) => ({ kind: 'slack', config: { url: random.pick(URLS) } }),
  (random: Random) => ({
    kind: 'alertmanager',
    config: { urls: [random.pick(URLS)], labels: { severity: random.word(3) } },
  }),
]

/** Names that do not resolve, and addresses that are rejected. */
const makeChannel = (random: Random) => ({
  name: `Fuzzed ${random.word(5)}`,
  events: ['check.down', random.pick(['check.up', 'check.unknown'])],
  muted: random.chance(0.3),
  after_seconds: random.chance(0.3) ? 60 : 0,
  ...random.pick(CONFIGS)(random),
})

export async function makeMaterial(app: TestApp): Promise<Material> {
  const call = async (...request: Parameters<TestApp['client']['call']>) => {
    const { status, body } = await app.client.call(...request)
    if (status >= 300) throw new Error(`${request[0]} ${request[1]}: ${status} ${JSON.stringify(body)}`)
    return body
  }
  const ids = async (count: number, path: string, make: (index: number) => object) => {
    const bodies = await Promise.all(
      Array.from({ length: count }, (_, index) => call('POST', path, { json: make(index) })),
    )
    return bodies.map(({ id }) => id as string)
  }
  const checkIds = await ids(40, '/checks', (index) => ({ project_id: app.projectId, name: `Job ${index}` }))
  const { public_id: publicId } = await call('GET', `/checks/${checkIds[0]}`)
  for (let ping = 0; ping < 3; ping += 1) {
    const { status } = await fetch(`${app.pingUrl}/ping/${publicId}/${ping}`)
    if (status !== 200) throw new Error(`ping ${ping}: ${status}`)
  }
  const logIns = await Promise.all([1, 2, 3].map(() => call('POST', '/auth/login', { json: app.logIn, key: null })))
  // One after the other: an organization reads one list at a time, and a list that waits too long is 503.
  const readCursor = async (list: string) => (await call('GET', `${list}limit=1`)).next_cursor as string
  const cursors = [await readCursor(`/checks/${checkIds[0]}/pings?`), await readCursor(`/checks/${checkIds[0]}/flips?`)]
  const places: [CheckSort, string][] = []
  for (const sort of CHECK_SORTS)
    places.push([sort, await readCursor(`/checks?project_id=${app.projectId}&sort=${sort}&`)])
  const channelIds = await ids(10, '/channels', (index) => ({
    name: `Channel ${index}`,
    kind: 'webhook',
    config: { url: 'http://hook.invalid/' },
  }))
  const tests = await Promise.all(channelIds.map((id) => call('POST', `/channels/${id}/test`)))
  return {
    channelIds,
    deliveryIds: tests.map(({ delivery_id: id }) => id),
    projectId: app.projectId,
    emptyProjectIds: await ids(5, '/projects', (index) => ({ name: `Project ${index}` })),
    checkIds,
    apiKeyIds: await ids(5, '/api-keys', (index) => ({ name: `Key ${index}`, scope: 'read' })),
    userIds: await ids(2, '/users', (index) => ({
      email: `user${index}@example.com`,
      password: 'long enough to pass',
      scope: 'read',
    })),
    cursors: [...cursors, ...places.map(([, cursor]) => cursor)],
    places,
    logIn: app.logIn,
    refreshTokens: logIns.map(({ refresh_token: token }) => token),
  }
}

/** Each in proportion to what it may break, and to what it costs: a password takes long to compute. */
export function pickOperation(random: Random, material: Material): Operation {
  const check = random.pick(material.checkIds)
  const channel = random.pick(material.channelIds)
  const page = () => ({
    ...(random.chance(0.5) ? { limit: random.pick(['1', '2', '1000', '1001', '0']) } : {}),
    ...(random.chance(0.5) ? { cursor: random.pick(material.cursors) } : {}),
  })
  const order = () => {
    const [sort, cursor] = random.pick(material.places)
    return random.chance(0.5) ? { sort, cursor } : {}
  }
  const filters = () => {
    const status = random.pick(SHOWN_STATUSES)
    const given = { status, slug: 'a', q: 'job', tag: 'a', label: 'team=shop', managed_by: random.pick(MANAGERS) }
    return Object.fromEntries(Object.entries(given).filter(() => random.chance(0.3)))
  }
  const when = () =>
    random.chance(0.5)
      ? { period_seconds: random.pick([10, 60, 31_536_000, 9]) }
      : { schedule: random.pick(SCHEDULES), time_zone: random.pick(TIME_ZONES) }
  const fields = () => ({
    name: `Fuzzed ${random.word(5)}`,
    tags: ['a'],
    labels: { team: 'shop' },
    slug: random.pick(['fuzzed', 'a', `s${random.int(0, 1e9)}`]),
    description: 'A description\nof two lines',
    grace_seconds: random.pick([0, 60, 31_536_000]),
    max_runtime_seconds: random.pick([1, 3_600, null]),
    ...when(),
  })
  const change = random.pick(['PATCH', 'PUT'])
  const aKey = {
    name: 'Fuzzed',
    scope: 'read',
    project_id: material.projectId,
    expires_at: '2031-01-31T12:00:00+01:00',
  }
  const aUser = { email: `u${random.int(0, 1e6)}@example.com`, password: 'long enough to pass', scope: 'read' }
  const aChannel = { project_id: random.pick([material.projectId, null]), ...makeChannel(random) }
  const ofList = { project_id: material.projectId, ...filters(), ...page(), ...order() }
  const ofDelivery = { channel_id: channel, check_id: check, status: random.pick(['pending', 'failed']), ...page() }
  const action = random.pick(['check.created', 'login.failed', 'x'])
  const ofEntry = { action, actor_id: check, target_id: check, ...page() }
  const send = (method: string, path: readonly string[], body?: object): Operation => ({ method, path, body })
  const get = (path: readonly string[], query?: Operation['query']): Operation => ({ method: 'GET', path, query })
  const operations: (readonly [weight: number, Operation])[] = [
    [20, send('POST', ['checks'], { project_id: material.projectId, ...fields() })],
    [20, send(change, ['checks', check], fields())],
    [10, get(['checks', check])],
    [2, send('DELETE', ['checks', check])],
    [4, send(random.pick(['POST', 'PATCH']), ['checks', check, random.pick(['pause', 'resume'])])],
    [8, get(['checks', check, random.pick(['pings', 'flips'])], page())],
    [15, get(['checks'], ofList)],
    [8, get([random.pick(['projects', 'api-keys', 'users', 'channels'])], page())],
    [6, send('POST', ['channels'], aChannel)],
    [8, send(random.pick(['GET', change]), ['channels', channel], { project_id: null, ...makeChannel(random) })],
    [3, send('POST', ['channels', channel, random.pick(['test', 'rotate-secret'])])],
    [1, send('DELETE', ['channels', channel])],
    [6, get(['deliveries'], ofDelivery)],
    [3, send('POST', ['deliveries', random.pick(material.deliveryIds), 'retry'])],
    [2, get(['deliveries', random.pick(material.deliveryIds)])],
    [4, get(['audit'], ofEntry)],
    [2, send(change, ['projects', random.pick(material.emptyProjectIds)], { name: 'Fuzzed' })],
    [2, send(change, ['api-keys', random.pick(material.apiKeyIds)], { name: 'Fuzzed' })],
    [6, send('POST', ['projects'], { name: 'Fuzzed', slug: `p${random.int(0, 1e6)}` })],
    [1, send('DELETE', ['projects', random.pick(material.emptyProjectIds)])],
    [6, send('POST', ['api-keys'], aKey)],
    [1, send('DELETE', ['api-keys', random.pick(material.apiKeyIds)])],
    [1, send('POST', ['users'], aUser)],
    [1, send(change, ['users', random.pick(material.userIds)], { scope: 'write' })],
    [1, send('DELETE', ['users', random.pick(material.userIds)])],
    [1, send('POST', ['auth', 'login'], material.logIn)],
    [
      4,
      send('POST', ['auth', random.pick(['refresh', 'logout'])], {
        refresh_token: random.pick(material.refreshTokens),
      }),
    ],
    [2, get([random.pick(['me', 'openapi.json', 'nowhere', ''])])],
  ]
  let left = random.int(
    1,
    operations.reduce((sum, [weight]) => sum + weight, 0),
  )
  for (const [weight, operation] of operations) {
    left -= weight
    if (left <= 0) return operation
  }
  throw new Error('the weights do not add up')
}
