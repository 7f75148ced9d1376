/**
 * What a team does to get one message where it could get many: it applies the examples of manifests/, its jobs send
 * pings, and a person takes a failure over on a phone. Each step needs those before it.
 */

import { afterAll, beforeAll, expect, it } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { eventually } from '../support/until.ts'
import { findOverflow, openPage } from './support/browser.ts'
import { type Installed, openInstalled, readExample } from './support/installed.ts'

let installed: Installed
// The first run on a machine builds the programs of the control plane.
beforeAll(async () => {
  installed = await openInstalled()
}, 900_000)
afterAll(() => installed?.[Symbol.asyncDispose]())

/** Of the receiver, how many messages a step has looked at. */
let seen = 0
/** The path of the receiver that is the chat; the other one is a program. */
const CHAT = '/chat'

/** The job reports to the URL that the operator has published. */
async function send(name: string, ...signals: ('success' | 'fail')[]): Promise<void> {
  const url = await installed.checks.pingUrl(name)
  for (const signal of signals)
    expect((await fetch(signal === 'fail' ? `${url}/fail` : url, { method: 'POST' })).status).toBe(200)
}

/**
 * What has arrived since the last call, once nothing is on its way: in the chat by the first line, at the program by
 * type, check, and number of the reminder.
 */
async function arrived(): Promise<{ chat: string[]; program: string[]; links: string[] }> {
  const { client, receiver } = installed
  await eventually('nothing is pending', async () => {
    const { body } = await client.get('/deliveries?status=pending')
    return body.deliveries.length === 0
  })
  const requests = receiver.requests.slice(seen)
  seen += requests.length
  const bodies = requests.map(({ path, body }) => ({ isChat: path === CHAT, message: JSON.parse(body) }))
  const texts = bodies.filter(({ isChat }) => isChat).map(({ message }): string => message.text)
  return {
    chat: texts.map((text) => text.split('\n')[0]!.replace(/ after \d+ (s|min|h)( \d+ (s|min))?$/, '')),
    program: bodies
      .filter(({ isChat }) => !isChat)
      .map(({ message: { type, data } }) =>
        [type, data.check.kubernetes.name, data.reminder].filter(Boolean).join(' '),
      ),
    links: texts.flatMap((text) => /^I have it: <(\S+)>$/m.exec(text)?.[1] ?? []),
  }
}

const NOTHING = { chat: [], program: [], links: [] }

async function idOf(name: string): Promise<string> {
  return (await installed.checks.get(name)).status!.checkId!
}

/** Why the messages about a check were not sent, newest first; two channels want each. */
async function notSent(name: string): Promise<{ type: string; reason: string; cause: object | null }[]> {
  const { body } = await installed.client.get(`/deliveries?status=suppressed&check_id=${await idOf(name)}`)
  return body.deliveries.map(({ type, reason, cause }: { type: string; reason: string; cause: object | null }) => ({
    type,
    reason,
    cause,
  }))
}

it('a channel is a Secret and a HeartbeatChannel: kubectl apply, and a test arrives in the chat', async () => {
  const { applyUntilReady, kubectl, client, receiver } = installed
  const [url] = /https:\S+/.exec(readExample('chat.yaml'))!
  await applyUntilReady(readExample('chat.yaml').replace(url, receiver.url + CHAT))
  await applyUntilReady(`
apiVersion: heartbeat-operator.io/v1
kind: HeartbeatChannel
metadata: {name: program}
spec: {webhook: {url: "${receiver.url}/program"}}`)
  expect(await kubectl('get', 'hbch')).toMatch(/^program +webhook +True[\s\S]*^team-chat +slack +True/m)
  const id = await kubectl('get', 'hbch', 'team-chat', '-o', 'jsonpath={.status.channelId}')
  expect((await client.post(`/channels/${id}/test`)).status).toBe(202)
  const [test] = await receiver.waitFor(1)
  expect(JSON.parse(test!.body).text).toContain('A test of this channel')
  seen = 1
})

it('a job that fails now and then notifies no one, and alarms once when it fails three times in a row', async () => {
  await installed.applyUntilReady(readExample('flaky-sync.yaml'))
  await send('flaky-sync', 'success', 'fail', 'success', 'fail', 'fail', 'success', 'fail', 'fail')
  expect(await arrived()).toEqual(NOTHING)
  await send('flaky-sync', 'fail', 'fail')
  expect(await arrived()).toMatchObject({
    chat: ['🔴 Sync with the supplier is down'],
    program: ['check.down flaky-sync'],
  })
  await send('flaky-sync', 'success')
  expect(await arrived()).toMatchObject({ chat: ['🟢 Sync with the supplier is up again'] })
})

it('a job that goes up and down all the time is said to flap, once, and then nothing more is sent of it', async () => {
  await installed.applyUntilReady(`
apiVersion: heartbeat-operator.io/v1
kind: HeartbeatCheck
metadata: {name: export}
spec: {periodSeconds: 3600}`)
  await send('export', 'success')
  for (let incident = 1; incident <= 5; incident += 1) {
    await send('export', 'fail')
    expect(await arrived()).toMatchObject({ chat: ['🔴 export is down'], program: ['check.down export'] })
    await send('export', 'success')
    expect(await arrived()).toMatchObject({ chat: ['🟢 export is up again'], program: ['check.up export'] })
  }
  await send('export', 'fail')
  expect(await arrived()).toMatchObject({ chat: ['🔴 export is flapping'], program: ['check.flapping export'] })
  await send('export', 'success', 'fail', 'success', 'fail')
  expect(await arrived()).toEqual(NOTHING)
  const up = { type: 'check.up', reason: 'flapping', cause: null }
  const down = { ...up, type: 'check.down' }
  expect(await notSent('export')).toEqual([down, down, up, up, down, down, up, up])
})

it('a backup reminds at each run that fails, until a person presses "I have it" on a phone', async () => {
  const { applyUntilReady, client, origin, browser, checks } = installed
  await applyUntilReady(readExample('weekly-backup.yaml'))
  await send('weekly-backup', 'success', 'fail')
  expect(await arrived()).toMatchObject({ chat: ['🔴 Weekly backup is down'], program: ['check.down weekly-backup'] })
  await send('weekly-backup', 'fail')
  const first = await arrived()
  expect(first).toMatchObject({ chat: ['🔴 Weekly backup is still down'], program: ['check.down weekly-backup 1'] })

  const [link] = first.links
  await using phone = await openPage(browser, origin, { width: 390, height: 844 })
  expect((await phone.page.goto(link!))!.status()).toBe(200)
  await phone.page.getByRole('heading', { name: 'Weekly backup is down' }).waitFor()
  expect(await findOverflow(phone.page)).toEqual([])
  const find = async () => (await client.get(`/checks/${await idOf('weekly-backup')}`)).body.acknowledged
  expect(await find(), 'looking changes nothing').toBeNull()
  await send('weekly-backup', 'fail')
  expect(await arrived()).toMatchObject({ program: ['check.down weekly-backup 2'] })

  await phone.page.getByLabel('Your name').fill('Ada')
  await phone.page.getByRole('button', { name: 'I have it' }).click()
  await phone.page.getByText('Thank you.').waitFor()
  expect(await find()).toMatchObject({ by: { kind: 'link', name: 'Ada' }, until: null })
  await send('weekly-backup', 'fail')
  expect(await arrived()).toEqual(NOTHING)
  const reminder = { type: 'check.down', reason: 'acknowledged', cause: null }
  expect(await notSent('weekly-backup')).toEqual([reminder, reminder])

  await send('weekly-backup', 'success')
  expect(await arrived()).toMatchObject({ chat: ['🟢 Weekly backup is up again'], program: ['check.up weekly-backup'] })
  expect((await fetch(link!)).status, 'the link ends with the incident').toBe(410)
  expect(phone.faults).toEqual([])
  await checks.inState('weekly-backup', 'up')
})

it('a database goes down with ten jobs that need it: one message, and one when all are up again', async () => {
  const [database, job] = parseAllDocuments(readExample('depends-on.yaml')).map((document) => document.toJS())
  const names = Array.from({ length: 10 }, (_, index) => `${job.metadata.name}-${index}`)
  const jobs = names.map((name) => ({ ...job, metadata: { name } }))
  await installed.applyUntilReady([...jobs, database].map((object) => stringify(object)).join('---\n'))
  await installed.kubectl(
    ...['wait', '--for=condition=DependenciesResolved', '--timeout=45s'],
    ...names.map((name) => `hbc/${name}`),
  )
  for (const name of ['database', ...names]) await send(name, 'success')
  expect(await arrived()).toEqual(NOTHING)

  await send('database', 'fail')
  await Promise.all(names.map((name) => send(name, 'fail')))
  await Promise.all(names.map((name) => installed.checks.inState(name, 'down')))
  expect(await arrived()).toMatchObject({ chat: ['🔴 Database is down'], program: ['check.down database'] })
  const cause = { kind: 'check', id: await idOf('database') }
  const held = { type: 'check.down', reason: 'dependency', cause }
  for (const name of names) expect(await notSent(name)).toEqual([held, held])

  await send('database', 'success')
  await Promise.all(names.map((name) => send(name, 'success')))
  await Promise.all(names.map((name) => installed.checks.inState(name, 'up')))
  expect(await arrived()).toMatchObject({ chat: ['🟢 Database is up again'], program: ['check.up database'] })
  // Its pings end here: it would be down again in the next step.
  await installed.kubectl('delete', 'hbc', 'database')
})

it('in a weekly maintenance window no message is sent, and at its end one of what is still down', async () => {
  const { applyUntilReady, kubectl } = installed
  const example = readExample('weekly-silence.yaml')
  const { spec } = parseAllDocuments(example)[0]!.toJS()
  const began = new Date(Date.now() - 3_600_000)
  const schedule = `${began.getUTCMinutes()} ${began.getUTCHours()} * * ${began.getUTCDay()}`
  await applyUntilReady(example.replace(spec.schedule, schedule).replace(spec.timeZone, 'Etc/UTC'))
  await kubectl('wait', '--for=condition=Active', '--timeout=45s', 'hbs/patch-night')
  const check = (name: string, labels = {}) => ({
    apiVersion: 'heartbeat-operator.io/v1',
    kind: 'HeartbeatCheck',
    metadata: { name, labels },
    spec: { periodSeconds: 3_600 },
  })
  const { matchLabels } = spec.checkSelector
  const checks = [check('node-1', matchLabels), check('node-2', matchLabels), check('elsewhere')]
  await applyUntilReady(checks.map((object) => stringify(object)).join('---\n'))

  for (const { metadata } of checks) await send(metadata.name, 'success', 'fail')
  await send('node-2', 'success')
  expect(await arrived()).toMatchObject({ chat: ['🔴 elsewhere is down'], program: ['check.down elsewhere'] })
  const id = await kubectl('get', 'hbs', 'patch-night', '-o', 'jsonpath={.status.silenceId}')
  const down = { type: 'check.down', reason: 'silenced', cause: { kind: 'silence', id } }
  expect(await notSent('node-1')).toEqual([down, down])

  await kubectl('delete', 'hbs', 'patch-night')
  await installed.receiver.waitFor(seen + 2)
  expect(await arrived()).toMatchObject({ chat: ['🔴 node-1 is down'], program: ['check.down node-1'] })
})
