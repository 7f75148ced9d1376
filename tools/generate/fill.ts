/** What people and jobs do with a service, by its API and its ping API alone. */

import { setTimeout } from 'node:timers/promises'
import { eventually } from '../../test/support/until.ts'
import { type Known, PASSWORDS, RECEIVER_PORT } from '../../test/support/upgrade/known.ts'
import type { Workplace } from '../../test/support/workplace.ts'

// biome-ignore lint/suspicious/noExplicitAny: responses of every shape
export type Call = (method: string, path: string, json?: unknown, authorization?: string) => Promise<any>

export interface Filled {
  readonly call: Call
  readonly ping: (publicId: string, path?: string, body?: string) => Promise<void>
  /** The namespace `shop`. */
  readonly place: Workplace
  readonly project: string
  readonly adminKey: string
}

const RECEIVER = `http://127.0.0.1:${RECEIVER_PORT}`
const EVERY_EVENT = ['check.down', 'check.up', 'check.late', 'check.unknown', 'check.paused', 'check.resumed']
/** Far enough that nothing becomes late in a test. */
const DAY = { period_seconds: 86_400, grace_seconds: 86_400 }

export async function fill(service: Filled): Promise<Omit<Known, 'responses'>> {
  const { call, project } = service
  const { id: payments } = await call('POST', '/projects', { name: 'Payments' })
  await call('POST', '/projects', { name: 'Empty' })
  await call('POST', '/users', { email: 'Writer@Example.com', password: PASSWORDS.writer, scope: 'write' })
  await call('POST', '/users', { email: 'reader@example.com', password: PASSWORDS.reader, scope: 'read' })
  const keys: Record<string, string> = { admin: service.adminKey }
  for (const [name, fields] of Object.entries({
    read: { scope: 'read' },
    write: { scope: 'write' },
    payments: { scope: 'write', project_id: payments },
    expiring: { scope: 'admin', expires_at: '2099-01-01T00:00:00Z' },
  }))
    keys[name] = (await call('POST', '/api-keys', { name: `The ${name} key`, ...fields })).key
  const removedKey = await call('POST', '/api-keys', { name: 'Removed', scope: 'read' })
  await call('DELETE', `/api-keys/${removedKey.id}`)
  const logIn = { email: 'writer@example.com', password: PASSWORDS.writer }
  const spent = await call('POST', '/auth/login', logIn)
  const refreshToken = (await call('POST', '/auth/refresh', { refresh_token: spent.refresh_token })).refresh_token

  const channels = await makeChannels(call, payments)
  const checks = await makeChecks(service, payments)
  await declareChecks(service, checks)
  await eventually(
    'the deadlines have passed',
    () => hasStatus(call, checks, { silent: 'down', behind: 'late' }),
    40_000,
  )
  await eventually('all is sent that can be sent', async () => {
    const { deliveries } = await call('GET', '/deliveries?status=pending&limit=1000')
    if (deliveries.every((delivery: { channel_id: string }) => delivery.channel_id === channels.away)) return true
    // The organization may call 1,000 times a minute.
    await setTimeout(500)
    return false
  })
  return {
    project,
    payments,
    keys,
    refreshTokens: { unspent: refreshToken, spent: spent.refresh_token },
    channels,
    checks,
  }
}

async function makeChannels(call: Call, payments: string): Promise<Record<string, string>> {
  const ids: Record<string, string> = {}
  for (const [name, fields] of Object.entries({
    webhook: { kind: 'webhook', events: EVERY_EVENT, config: { url: `${RECEIVER}/webhook?token=example` } },
    payments: { kind: 'webhook', project_id: payments, config: { url: `${RECEIVER}/payments` } },
    muted: { kind: 'webhook', muted: true, config: { url: `${RECEIVER}/muted` } },
    away: { kind: 'webhook', config: { url: `${RECEIVER}/away` } },
    gone: { kind: 'webhook', config: { url: `${RECEIVER}/gone` } },
    slack: { kind: 'slack', config: { url: `${RECEIVER}/slack` } },
    email: { kind: 'email', config: { to: ['on-call@example.com', 'second@example.com'] } },
    alertmanager: { kind: 'alertmanager', config: { urls: [`${RECEIVER}/alertmanager`], labels: { team: 'ops' } } },
  }))
    ids[name] = (await call('POST', '/channels', { name: `The ${name} channel`, ...fields })).id
  return ids
}

async function makeChecks({ call, ping, project }: Filled, payments: string): Promise<Known['checks']> {
  const checks: Known['checks'] = {}
  const make = async (name: string, fields: object = DAY) => {
    const { id, public_id: publicId } = await call('POST', '/checks', { project_id: project, name, ...fields })
    checks[name] = { id, publicId }
    return publicId as string
  }
  await make('new')
  await ping(await make('armed'), '/start')
  const up = await make('up', {
    ...{ schedule: '0 2 * * *', time_zone: 'Europe/Berlin', grace_seconds: 86_400, max_runtime_seconds: 7_200 },
    ...{ slug: 'nightly-backup', description: 'Dumps the database.\nAsk the team.', tags: ['team:ops', 'nightly'] },
  })
  const run = '0190163d-8694-739b-aea5-966c26f8ad91'
  await ping(up, `/start?rid=${run}`)
  await ping(up, `/0?rid=${run}&duration=61000`, 'wrote 12 tables\n')
  await ping(up, '/log', 'a line \u2713\u0000 with a NUL')
  await ping(up, '/start?rid=0190163d-8694-739b-aea5-966c26f8ad92') // still open
  const failed = await make('failed')
  await ping(failed)
  await ping(failed, '/3', 'disk full: /var/lib/backup\n')
  await ping(failed, '/fail', 'still full\n')
  const recovered = await make('recovered')
  await ping(recovered, '/fail')
  await ping(recovered)
  const silent = await make('silent', { period_seconds: 10, grace_seconds: 0 })
  await ping(silent)
  await ping(await make('behind', { period_seconds: 10, grace_seconds: 86_400 }))
  const paused = await make('paused')
  await ping(paused)
  await call('POST', `/checks/${checks.paused!.id}/pause`)
  await ping(paused, '/fail', 'while paused')
  const downPaused = await make('down-paused')
  await ping(downPaused, '/fail')
  await call('POST', `/checks/${checks['down-paused']!.id}/pause`)
  const removed = await make('removed')
  await ping(removed, '/fail')
  await call('DELETE', `/checks/${checks.removed!.id}`)
  delete checks.removed
  await ping(await make('payroll', { ...DAY, project_id: payments }), '/fail', 'no money')
  return checks
}

/** Up, down, waiting and paused; one that was deleted, and one that was handed over to the API. */
async function declareChecks({ call, ping, place }: Filled, checks: Known['checks']): Promise<void> {
  const spec = { periodSeconds: 86_400, graceSeconds: 86_400 }
  const declare = async (name: string, more: object = {}) => {
    const { status } = await place.makeReady(name, { ...spec, ...more })
    const publicId = (await place.pingUrl(name)).split('/').at(-1)!
    checks[`declared-${name}`] = { id: status!.checkId!, publicId }
    return publicId
  }
  await ping(await declare('up', { tags: ['nightly'], displayName: 'Declared and up' }))
  await ping(await declare('down'), '/fail', 'exit status 1')
  await declare('waiting')
  await declare('suspended', { suspend: true })
  await ping(await declare('deleted'))
  await place.delete('deleted')
  await ping(await declare('retained', { deletionPolicy: 'Retain' }))
  await place.delete('retained')
  await eventually('the retained check belongs to the API', async () => {
    const { managed_by: manager } = await call('GET', `/checks/${checks['declared-retained']!.id}`)
    return manager === 'api'
  })
}

async function hasStatus(call: Call, checks: Known['checks'], wanted: Record<string, string>): Promise<boolean> {
  const shown = await Promise.all(Object.keys(wanted).map((name) => call('GET', `/checks/${checks[name]!.id}`)))
  return shown.every(({ status }, index) => status === Object.values(wanted)[index])
}

/** What the lists of the API say, for comparison after the upgrade. */
export async function readResponses(call: Call, { project, payments, checks }: Omit<Known, 'responses'>) {
  const { projects } = await call('GET', '/projects')
  const paths = [
    ...projects.map(({ id }: { id: string }) => `/checks?project_id=${id}`),
    ...Object.entries(checks).flatMap(([name, { id }]) =>
      name === 'declared-deleted' ? [] : [`/checks/${id}`, `/checks/${id}/pings`, `/checks/${id}/flips`],
    ),
    `/checks?project_id=${project}&tag=nightly&q=backup`,
    `/checks?project_id=${payments}&status=down`,
    ...['/channels', '/deliveries?status=delivered&limit=1000', '/deliveries?status=failed', '/projects', '/users'],
    '/me',
  ]
  const responses: Record<string, unknown> = {}
  for (const path of paths) responses[path] = await call('GET', path)
  return responses
}
