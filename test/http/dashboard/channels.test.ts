import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { KINDS } from '../../../src/channels/kinds/index.ts'
import { CHANNEL_KINDS, INSTALLATION_CHANNEL_ID, standardEventsOf } from '../../../src/domain/channel.ts'
import { escapeHtml, HOSTILE, readForm } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'
import { type Fields, type Visitor, visit } from '../../support/visitor.ts'

const UNKNOWN = '01999999-9999-7999-8999-999999999999'
const ESCAPED = escapeHtml(HOSTILE)
const SECRET = /whsec_[\w+/=]+/
/** Of a kind that wakes people; the others have warnings too. */
const STANDARD = ['check.down', 'check.up', 'check.paused', 'check.resumed', 'check.flapping', 'check.warned']

let admin: Visitor
let writer: Visitor
let reader: Visitor

const api = use(startTestApi)
const foreign = use(() => api.addOrganization())
beforeAll(async () => {
  ;[admin, writer, reader] = await Promise.all([visit(api), visit(api, 'write'), visit(api, 'read')])
})
beforeEach(async () => {
  await api.database.query('truncate deliveries, channels, events, rate_windows')
})

const CONFIGS = {
  webhook: { url: 'https://robot:s3cret@hooks.example.com/path-1?token=t0ken' },
  slack: { url: 'https://hooks.slack.com/services/T0/B0/s3cret' },
  email: { to: ['ops@example.com', 'dba@example.com'] },
  alertmanager: { urls: ['https://u:s3cret@alerts.example.com'], labels: { team: 'payments' } },
  teams: { url: 'https://x.environment.api.powerplatform.com/invoke?sv=1.0&sig=s3cret' },
  googlechat: { url: 'https://chat.googleapis.com/v1/spaces/x/messages?key=s3cret&token=t0ken' },
  discord: { url: 'https://discord.com/api/webhooks/1/s3cret' },
  pagerduty: { routing_key: 's3cret-key', url: 'https://events.example.com/t0ken' },
  apprise: { url: 'https://u:s3cret@apprise.example.com', urls: 'pover://t0ken@s3cret' },
  telegram: {
    token: `123456789:${'s3cret'.repeat(6)}`,
    chat_id: '@ops_room',
    url: 'https://u:t0ken@telegram.example.com',
  },
  ntfy: { topic: 'heartbeat', url: 'https://u:s3cret@ntfy.example.com', token: 'tk_t0ken' },
  matrix: { homeserver: 'https://u:s3cret@matrix.example.com', room_id: '!a:example.com', token: 'syt_t0ken' },
}
const makeChannel = async (fields: object = {}, key?: string): Promise<string> =>
  (await api.addChannel({ config: CONFIGS.webhook, ...fields }, key)).id
const read = async (id: string) => (await api.client.get(`/channels/${id}`)).body
/** The fields of a form as a browser would send them. */
const FORM: Fields = {
  kind: 'webhook',
  name: 'Pager',
  'config.url': CONFIGS.webhook.url,
  project_id: '',
  events: STANDARD,
}
const add = (fields: Fields = {}) => admin.post('/channels/new', { ...FORM, ...fields })
const faultOf = (text: string, input: string) =>
  new RegExp(`<small id="${input.replace('.', '\\.')}-fault" class="fault">([^<]*)</small>`).exec(text)?.[1]

describe('/channels', () => {
  it('has the channels by kind, each with whether it works', async () => {
    const works = await makeChannel({ name: 'Works' })
    const fails = await makeChannel({ name: 'Fails', kind: 'slack', config: CONFIGS.slack })
    await makeChannel({ name: 'Idle', kind: 'email', config: CONFIGS.email })
    await makeChannel({ name: 'Quiet', muted: true, project_id: api.project })
    const body = await api.addCheck({ name: 'Backup' })
    await api.ping(body.public_id, { type: 'fail', exitCode: null })
    const sent = 'attempts = 1, next_attempt_at = null'
    await api.database.query(`update deliveries set status = 1, ${sent} where channel_id = $1`, [works])
    await api.database.query(`update deliveries set status = 2, ${sent} where channel_id = $1`, [fails])
    const { status, text } = await reader.get('/channels')
    expect(status).toBe(200)
    expect([...text.matchAll(/<h2 id="kind-(\w+)">([^<]+)<\/h2>/g)].map(([, kind, title]) => [kind, title])).toEqual([
      ['webhook', 'Webhook'],
      ['slack', 'Slack'],
      ['email', 'E-mail'],
    ])
    const states = [
      ...text.matchAll(
        /<bdi>(\w+)<\/bdi><\/a><\/th>\s*<td data-label="State"><span class="status status-(\w+)"><svg.*?<\/svg> ([^<]+)</gs,
      ),
    ]
    expect(states.map(([, ...parts]) => parts)).toEqual([
      ['Works', 'up', 'Works'],
      ['Quiet', 'paused', 'Muted'],
      ['Fails', 'down', 'Failing'],
      ['Idle', 'new', 'Not used yet'],
    ])
    expect(text).toContain(`project <a href="/checks?project=${api.project}"><bdi>Default</bdi></a>`)
    expect(text).not.toMatch(/s3cret|t0ken/)
  })

  it('has pages', async () => {
    await api.copyChannel(await makeChannel(), 104)
    const first = await reader.get('/channels')
    const more = /<a href="([^"]+)" rel="next">/.exec(first.text)![1]!
    const second = await reader.get(more)
    const count = ({ text }: { text: string }) => text.split('<tr id="channel-').length - 1
    expect([count(first), count(second)]).toEqual([100, 5])
    expect((await reader.get('/channels?cursor=x')).status).toBe(422)
  })

  it('leads an admin to a new channel, and says to the others who can add one', async () => {
    expect((await admin.get('/channels')).text).toContain('href="/channels/new"')
    for (const visitor of [reader, writer]) {
      const { text } = await visitor.get('/channels')
      expect(text).not.toContain('/channels/new')
      expect(text).toContain('An admin of this dashboard can add one.')
    }
  })
})

describe('/channels/new', () => {
  it('lets choose a kind first', async () => {
    const { text } = await admin.get('/channels/new')
    for (const kind of CHANNEL_KINDS) {
      expect(text).toContain(`<a href="/channels/new?kind=${kind}">${KINDS[kind].config.title}</a>`)
      expect(text).toContain(KINDS[kind].config.purpose.replaceAll('"', '&quot;'))
    }
    expect((await admin.get('/channels/new?kind=fax')).text).toContain('Where do you want to be notified?')
  })

  it.each(CHANNEL_KINDS)('has every field of the kind %s, with its meaning, and the standard events', async (kind) => {
    const { status, text } = await admin.get(`/channels/new?kind=${kind}`)
    expect(status).toBe(200)
    for (const { name, label } of KINDS[kind].config.form) {
      expect(text).toContain(`<label for="config.${name}">${label}</label>`)
      expect(text).toContain(`id="config.${name}-meaning"`)
    }
    const checked = [...text.matchAll(/name="events" value="([^"]+)" checked/g)].map(([, type]) => type)
    expect(checked).toEqual(standardEventsOf(kind))
    expect(text).toContain(`<option value="${api.project}">Project Default</option>`)
  })

  it('adds a webhook and shows its secret once', async () => {
    const { status, text } = await add({ project_id: api.project, events: ['check.down', 'check.late'] })
    expect(status).toBe(200)
    const [secret] = SECRET.exec(text)!
    expect(text).toContain(`<code id="secret">${secret}</code>`)
    expect(text).toContain('it is not shown again')
    const id = /action="\/channels\/([^/]+)\/test"/.exec(text)![1]!
    expect(await read(id)).toMatchObject({
      name: 'Pager',
      kind: 'webhook',
      project_id: api.project,
      events: ['check.down', 'check.late'],
      muted: false,
    })
    for (const path of [`/channels/${id}`, `/channels/${id}/edit`, '/channels', '/deliveries'])
      expect((await admin.get(path)).text, path).not.toMatch(/whsec_|s3cret|t0ken/)
  })

  it.each([
    ['', 0],
    [' 0 ', 0],
    ['1 s', 1],
    ['30 min', 1_800],
    ['1 day', 86_400],
  ])('notifies the channel after "%s"', async (after_seconds, seconds) => {
    const { text } = await add({ after_seconds })
    const id = /action="\/channels\/([^/]+)\/test"/.exec(text)![1]!
    expect(await read(id)).toMatchObject({ after_seconds: seconds })
  })

  it.each(['86401', '1 day 1 s', '-1', 'soon', '1.5'])(
    'rejects the length "%s", and keeps it',
    async (after_seconds) => {
      const { status, text } = await add({ after_seconds })
      expect(status).toBe(422)
      const fault = 'Notify after must be a length of time such as 30 min, at most 1 day.'
      expect(faultOf(text, 'after_seconds')).toBe(fault)
      expect(text).toContain(`aria-invalid="true" autofocus value="${after_seconds}"`)
    },
  )

  it.each([
    ['slack', { 'config.url': ` ${CONFIGS.slack.url} ` }, { url: 'https://hooks.slack.com/…' }],
    ['email', { 'config.to': 'ops@example.com\r\n\r\n dba@example.com \r\n' }, CONFIGS.email],
    [
      'alertmanager',
      {
        'config.urls': 'https://a.example.com\nhttps://b.example.com',
        'config.labels': 'team = payments\nroute=a=b\n',
      },
      { urls: ['https://a.example.com', 'https://b.example.com'], labels: { team: 'payments', route: 'a=b' } },
    ],
  ])('adds one of the kind %s, and goes to it', async (kind, fields, config) => {
    const { status, location } = await add({ kind, ...fields })
    expect(status).toBe(303)
    expect(location).toMatch(/^\/channels\/[0-9a-f-]{36}\?done=channel-added$/)
    expect(await read(location!.slice(10, 46))).toMatchObject({ kind, config, project_id: null })
    const { text } = await admin.get(location!)
    expect(text).toContain('The channel is added. Send a test to see that it works.')
  })

  it.each([
    ['webhook', { 'config.url': 'ftp://x' }, 'config.url', /^URL must be an http or https URL/],
    ['webhook', { 'config.url': '' }, 'config.url', /^URL is required\.$/],
    ['webhook', { 'config.url': 'http://10.0.0.1/' }, 'config.url', /^URL cannot work: .*10\.0\.0\.1/],
    ['webhook', { name: ' ' }, 'name', /^Name must be text of 1 to 100 characters/],
    ['webhook', { events: [] }, 'events', /^Choose at least one event\.$/],
    ['webhook', { project_id: UNKNOWN }, 'project_id', /^This project does not exist any more: choose another\.$/],
    ['slack', { 'config.url': 'hooks.slack.com' }, 'config.url', /^URL of the incoming webhook must be/],
    [
      'email',
      { 'config.to': 'ops@example.com\nops' },
      'config.to',
      /^Recipients, line 2: must be an e-mail address\.$/,
    ],
    [
      'apprise',
      { 'config.url': 'https://a.example.com', 'config.key': 'ops', 'config.urls': 'json://b.example.com' },
      'config.key',
      /^Key must be given, or else urls: exactly one of the two\.$/,
    ],
    [
      'alertmanager',
      { 'config.urls': 'https://a.example.com/api/v2/alerts' },
      'config.urls',
      /^Addresses, line 1: must be/,
    ],
    [
      'alertmanager',
      { 'config.urls': 'https://a.example.com', 'config.labels': '__proto__=x\nteam' },
      'config.labels',
      /^Labels, __proto__: must have a name .*\. Labels, team: must be text of 1 to 200 characters/,
    ],
  ] as const)('rejects %s with %j, next to its field', async (kind, fields, input, fault) => {
    const { status, text } = await add({ kind, ...fields })
    expect(status).toBe(422)
    expect(faultOf(text, input)).toMatch(fault)
    expect(text).toMatch(
      new RegExp(input === 'events' ? 'aria-describedby="events-fault"' : `id="${input}"[^>]* aria-invalid="true"`),
    )
    expect((await api.client.get('/channels')).body.channels).toEqual([])
  })

  it('shows all faults at once, and keeps what was typed', async () => {
    const { status, text } = await add({ name: '', 'config.url': `nope ${HOSTILE}`, events: ['check.late'] })
    expect(status).toBe(422)
    expect(faultOf(text, 'name')).toBeDefined()
    expect(faultOf(text, 'config.url')).toBeDefined()
    expect(text).toContain(`value="nope ${ESCAPED}"`)
    expect([...text.matchAll(/value="([^"]+)" checked/g)].map(([, type]) => type)).toEqual(['check.late'])
  })

  it('says that there are as many as there can be', async () => {
    await api.copyChannel(await makeChannel(), 19)
    const { status, text } = await add()
    expect(status).toBe(409)
    expect(text).toContain('The organization has 20 channels, the maximum: remove one first.')
  })
})

describe('/channels/{id}', () => {
  it.each(CHANNEL_KINDS)('shows the settings of a %s without secrets', async (kind) => {
    const id = await makeChannel({ kind, config: CONFIGS[kind] })
    for (const visitor of [admin, reader]) {
      const { status, text } = await visitor.get(`/channels/${id}`)
      expect(status).toBe(200)
      expect(text).not.toMatch(/s3cret|t0ken|whsec_/)
      expect(text).toContain('Down, Up again, Paused, Resumed, Flapping')
    }
    // The path of a webhook can be its credential: those who cannot change the channel do not see it.
    if (kind === 'webhook') {
      expect((await admin.get(`/channels/${id}`)).text).toContain('https://…@hooks.example.com/path-1?…')
      for (const visitor of [reader, writer]) {
        const { text } = await visitor.get(`/channels/${id}`)
        expect(text).toContain('https://hooks.example.com/…')
        expect(text).not.toContain('path-1')
      }
    }
  })

  it('shows hostile texts as text, on every page', async () => {
    const config = { urls: ['https://alerts.example.com'], labels: { team: HOSTILE } }
    const id = await makeChannel({ kind: 'alertmanager', name: HOSTILE, config })
    const pages = ['', '/edit', '/mute', '/delete'].map((rest) => `/channels/${id}${rest}`)
    for (const path of ['/channels', ...pages]) {
      const { status, text } = await admin.get(path)
      expect(status, path).toBe(200)
      expect(text, path).toContain(ESCAPED)
      expect(text, path).not.toContain('<script>alert')
    }
    expect((await admin.get(`/channels/${id}`)).text).toContain(`<code><bdi>team=${ESCAPED}</bdi></code>`)
    const hook = await makeChannel({ name: HOSTILE })
    for (const send of [admin.get, admin.post])
      expect((await send(`/channels/${hook}/rotate-secret`)).text).toContain(`<bdi>${ESCAPED}</bdi>`)
  })

  it('warns of a URL without TLS, and of what makes it fail', async () => {
    const clear = await makeChannel({ config: { url: 'http://hooks.example.com/' } })
    expect((await reader.get(`/channels/${clear}`)).text).toContain(
      'The URL is http: what is sent can be read on its way.',
    )
    const safe = await makeChannel()
    expect((await reader.get(`/channels/${safe}`)).text).not.toContain('class="warning"')
    await api.database.query("update channels set sealed_with = '\\x00' where id = $1", [safe])
    const { text } = await admin.get(`/channels/${safe}`)
    expect(text).toContain('sealed under another SECRET_KEY')
    expect(text).toContain('Cannot deliver')
    // Its form asks for the whole config again.
    const form = await admin.get(`/channels/${safe}/edit`)
    expect(form.text).toContain('sealed under another SECRET_KEY')
    expect((await admin.post(`/channels/${safe}/edit`, FORM)).status).toBe(303)
    expect(await read(safe)).not.toHaveProperty('warnings')
  })

  it('has the last deliveries with their responses, and sends one again', async () => {
    const id = await makeChannel()
    const body = await api.addCheck({ name: 'Backup' })
    await api.ping(body.public_id, { type: 'fail', exitCode: null })
    await api.database.query(
      `update deliveries set status = 2, attempts = 2, next_attempt_at = null, last_status = 503, last_error = 'hooks.example.com responded 503'`,
    )
    const { text } = await writer.get(`/channels/${id}`)
    expect(text).toMatch(
      /<bdi>Backup<\/bdi>.*Failed.*<strong>503<\/strong>.*hooks\.example\.com responded 503.*2 attempts/s,
    )
    expect(text).toContain(`<input type="hidden" name="back" value="/channels/${id}">`)
    expect(text).toContain('Failing')
    expect((await reader.get(`/channels/${id}`)).text).not.toMatch(
      /Send again|<form method="post" action="\/(channels|deliveries)/,
    )
  })

  it('sends a test, whose outcome is on the page', async () => {
    const id = await makeChannel({ muted: true })
    const testing = admin.post(`/channels/${id}/test`)
    await expect
      .poll(
        async () => (await api.database.query('select from deliveries where type = $1', ['channel.test'])).rows.length,
      )
      .toBe(1)
    const before = await admin.get(`/channels/${id}`)
    expect(before.text).toMatch(/<strong>Last test<\/strong>.*Pending.*not sent yet.*Show the outcome/s)
    await api.database.query(
      'update deliveries set status = 1, attempts = 1, next_attempt_at = null, last_status = 204, delivered_at = now()',
    )
    const { status, location } = await testing
    expect([status, location]).toEqual([303, `/channels/${id}?done=test-sent`])
    const { text } = await admin.get(location!)
    expect(text).toContain('A test is sent. Its outcome is below.')
    expect(text).toMatch(/<strong>Last test<\/strong>.*Delivered.*<strong>204<\/strong>/s)
  })

  it('is muted by one click, or after a page when deliveries would be lost', async () => {
    const id = await makeChannel()
    expect((await admin.get(`/channels/${id}`)).text).toContain(`<form method="post" action="/channels/${id}/mute">`)
    const { status, location } = await admin.post(`/channels/${id}/mute`)
    expect([status, location]).toEqual([303, `/channels/${id}?done=channel-muted`])
    expect(await read(id)).toMatchObject({ muted: true })
    const muted = await admin.get(location!)
    expect(muted.text).toContain('The channel is muted.')
    expect(muted.text).toContain(`<form method="post" action="/channels/${id}/unmute">`)
    expect((await admin.post(`/channels/${id}/unmute`)).location).toBe(`/channels/${id}?done=channel-unmuted`)
    expect(await read(id)).toMatchObject({ muted: false })

    const body = await api.addCheck({ name: 'Backup' })
    await api.ping(body.public_id, { type: 'fail', exitCode: null })
    const { text } = await admin.get(`/channels/${id}`)
    expect(text).not.toContain(`action="/channels/${id}/mute"`)
    expect(text).toContain(`href="/channels/${id}/mute"`)
    expect((await admin.get(`/channels/${id}/mute`)).text).toContain('Deliveries to it that are pending fail')
  })

  it('makes a new secret after a page, and shows it once', async () => {
    const created = await add()
    const first = SECRET.exec(created.text)![0]
    const id = /action="\/channels\/([^/]+)\/test"/.exec(created.text)![1]!
    const question = await admin.get(`/channels/${id}/rotate-secret`)
    expect(question.text).toContain('For 24 hours the previous one signs too')
    expect(question.text).not.toMatch(SECRET)
    const { status, text } = await admin.post(`/channels/${id}/rotate-secret`)
    expect(status).toBe(200)
    expect(SECRET.exec(text)![0]).not.toBe(first)
    expect((await admin.get(`/channels/${id}`)).text).not.toMatch(SECRET)
    const slack = await makeChannel({ kind: 'slack', config: CONFIGS.slack })
    expect((await admin.get(`/channels/${slack}`)).text).not.toContain('rotate-secret')
    for (const send of [admin.get, admin.post])
      expect((await send(`/channels/${slack}/rotate-secret`)).status).toBe(409)
  })

  it('does neither again when the browser loads the response again', async () => {
    const [, newId] = /name="new_id" value="([^"]+)"/.exec((await admin.get('/channels/new?kind=webhook')).text)!
    const created = await add({ new_id: newId! })
    const id = /action="\/channels\/([^/]+)\/test"/.exec(created.text)![1]!
    const again = await add({ new_id: newId! })
    expect([id, again.status]).toEqual([newId, 409])
    expect(again.text).toContain('This channel was created already, and its secret is not shown again.')

    const ask = async () =>
      /name="seen" value="([^"]+)"/.exec((await admin.get(`/channels/${id}/rotate-secret`)).text)![1]!
    for (let round = 0; round < 2; round += 1) {
      const seen = await ask()
      const both = await Promise.all([1, 2].map(() => admin.post(`/channels/${id}/rotate-secret`, { seen })))
      expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
      const late = await admin.post(`/channels/${id}/rotate-secret`, { seen })
      expect(late.status).toBe(409)
      expect(late.text).toContain('make another one if you have not copied it.')
      expect(late.text).not.toMatch(SECRET)
    }
    const stored = await api.database.query('select from channels')
    expect(stored.rows).toHaveLength(1)
  })

  it('is deleted after a page that says what is lost', async () => {
    const id = await makeChannel()
    const { text } = await admin.get(`/channels/${id}/delete`)
    expect(text).toContain('Its deliveries are deleted')
    const { status, location } = await admin.post(`/channels/${id}/delete`)
    expect([status, location]).toEqual([303, '/channels?done=channel-deleted'])
    expect((await admin.get(`/channels/${id}`)).status).toBe(404)
  })

  it('is deleted after a page that says how many checks notify it alone', async () => {
    const id = await makeChannel()
    const make = () => api.client.post('/checks', { project_id: api.project, name: 'Backup', channels: [id] })
    const check = (await make()).body.id
    // The page was shown before the check chose the channel.
    const late = await admin.post(`/channels/${id}/delete`)
    expect(late.status).toBe(409)
    expect(late.text).toContain('1 check notifies this channel alone')
    await make()
    const { text } = await admin.get(`/channels/${id}/delete`)
    expect(text).toContain('2 checks notify this channel alone')
    expect(text).toContain('<input type="hidden" name="force" value="true">')
    expect((await admin.post(`/channels/${id}/delete`, { force: 'true' })).location).toBe(
      '/channels?done=channel-deleted',
    )
    expect((await api.client.get(`/checks/${check}`)).body.channels).toBeNull()
  })

  it('does not move while checks of other projects have chosen it, and the form says which', async () => {
    const id = await makeChannel()
    const project_id = (await api.client.post('/projects', { name: 'Other' })).body.id
    await api.addCheck({ name: 'Backup <1>', channels: [id] })
    const { status, text } = await admin.post(`/channels/${id}/edit`, { ...FORM, project_id })
    expect([status, faultOf(text, 'project_id')]).toEqual([
      409,
      expect.stringMatching(/^The channel was chosen by a check of another project.*Backup &lt;1&gt;/),
    ])
  })
})

describe('/channels/{id}/edit', () => {
  const edit = (id: string, fields: Fields) => admin.post(`/channels/${id}/edit`, fields)
  /** The fields as the form has them. */
  const shown = (text: string): Fields => ({
    name: /id="name"[^>]* value="([^"]*)"/.exec(text)![1]!,
    'config.url': /id="config\.url"[^>]* value="([^"]*)"/.exec(text)![1]!.replaceAll('&amp;', '&'),
    project_id: /<option value="([^"]*)" selected>/.exec(text)![1]!,
    after_seconds: /id="after_seconds"[^>]* value="([^"]*)"/.exec(text)![1]!,
    events: [...text.matchAll(/name="events" value="([^"]+)" checked/g)].map(([, type]) => type!),
  })

  it('sent back as it was shown changes nothing, the hidden parts neither', async () => {
    const id = await makeChannel({ project_id: api.project, after_seconds: 5_400 })
    const before = await read(id)
    const { rows: sealed } = await api.database.query('select id from channels')
    const fields = shown((await admin.get(`/channels/${id}/edit`)).text)
    expect(fields['config.url']).toBe('https://…@hooks.example.com/path-1?…')
    const { status, location } = await edit(id, fields)
    expect([status, location]).toEqual([303, `/channels/${id}?done=channel-changed`])
    expect(await read(id)).toEqual(before)
    expect(sealed).toHaveLength(1)
    const stored = await api.database.query<{ sealed: Buffer; sealedWith: Buffer }>(
      'select sealed, sealed_with as "sealedWith" from channels where id = $1',
      [id],
    )
    expect(api.context.sealer.open(id, stored.rows[0]!)).toMatchObject(CONFIGS.webhook)
  })

  it('changes name, project, events and config', async () => {
    const id = await makeChannel({ muted: true })
    const url = 'https://other.example.com/x'
    await edit(id, {
      name: 'Other',
      'config.url': url,
      project_id: api.project,
      events: ['check.down'],
      after_seconds: '5 min',
    })
    expect(await read(id)).toMatchObject({
      name: 'Other',
      after_seconds: 300,
      config: { url },
      project_id: api.project,
      events: ['check.down'],
      muted: true,
    })
  })

  it('shows when a second channel is notified, and says it of each one in its list', async () => {
    const first = await makeChannel()
    expect((await reader.get('/channels')).text).not.toContain('>Notified<')
    const id = await makeChannel({ after_seconds: 1_800 })
    const words = 'after 30 minutes, unless a person has it by then'
    expect((await reader.get(`/channels/${id}`)).text).toContain(`<dt>Notified</dt><dd>${words}</dd>`)
    expect((await reader.get(`/channels/${first}`)).text).not.toContain('Notified')
    const cells = [...(await reader.get('/channels')).text.matchAll(/<td data-label="Notified">([^<]*)</g)]
    expect(cells.map(([, cell]) => cell)).toEqual(['at once', words])
  })

  it('keeps what another admin changed meanwhile in other fields; of the same field the later one counts', async () => {
    const config = { urls: ['https://alerts.example.com'], labels: { team: 'payments' } }
    const id = await makeChannel({ kind: 'alertmanager', config })
    const path = `/channels/${id}/edit`
    const form = { ...readForm((await admin.get(path)).text, path), events: standardEventsOf('alertmanager') }
    const first = { name: 'By the first', events: ['check.down', 'check.up'], 'config.labels': 'team=first' }
    await edit(id, { ...form, ...first, project_id: api.project })
    await edit(id, { ...form, name: 'By the second', 'config.urls': 'https://two.example.com' })
    expect(await read(id)).toMatchObject({
      name: 'By the second',
      project_id: api.project,
      events: ['check.down', 'check.up'],
      config: { urls: ['https://two.example.com'], labels: { team: 'first' } },
    })
    const none = await edit(id, { ...form, events: [] })
    expect([none.status, faultOf(none.text, 'events')]).toEqual([422, 'Choose at least one event.'])
  })

  it('of a channel that is removed while the form is saved says that the channel is not found', async () => {
    const id = await makeChannel()
    const removed = await api.database.transaction(async (tx) => {
      await tx.query('delete from channels where id = $1', [id])
      const saved = edit(id, FORM)
      // The form waits for the row.
      await eventually('a statement waits for a lock', async () => {
        const { rows } = await api.database.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        )
        return rows.length > 0
      })
      return { saved }
    })
    const { status, text } = await removed.saved
    expect(status).toBe(404)
    expect(text).toContain('Channel not found.')
  })

  it('of a project that was removed says so beside its field', async () => {
    const id = await makeChannel()
    const { status, text } = await edit(id, { ...FORM, project_id: UNKNOWN })
    expect([status, faultOf(text, 'project_id')]).toEqual([
      422,
      'This project does not exist any more: choose another.',
    ])
  })

  it('rejects faults next to their fields, all at once', async () => {
    const id = await makeChannel()
    const { status, text } = await edit(id, { name: '', 'config.url': 'https://…@other.example.com/', project_id: '' })
    expect(status).toBe(422)
    expect(faultOf(text, 'name')).toMatch(/^Name must be/)
    expect(faultOf(text, 'events')).toBe('Choose at least one event.')
    const hidden = await edit(id, { ...FORM, 'config.url': 'https://…@other.example.com/' })
    expect(hidden.status).toBe(422)
    expect(faultOf(hidden.text, 'config.url')).toMatch(/^URL must be written out: … stands for what is not shown/)
  })
})

describe('pages of a channel', () => {
  const READS = ['', '/edit', '/mute', '/rotate-secret', '/delete']
  const CHANGES = ['/edit', '/test', '/mute', '/unmute', '/rotate-secret', '/delete']

  it('are 404 for a channel of another organization, an unknown and a malformed id', async () => {
    const theirs = await makeChannel({ name: 'Theirs' }, foreign.keys.admin)
    for (const id of [theirs, UNKNOWN, 'x']) {
      for (const rest of READS) expect((await admin.get(`/channels/${id}${rest}`)).status, rest).toBe(404)
      for (const rest of CHANGES) expect((await admin.post(`/channels/${id}${rest}`, FORM)).status, rest).toBe(404)
    }
    expect((await admin.get('/channels')).text).not.toContain('Theirs')
  })

  it('that change something need the scope admin', async () => {
    const id = await makeChannel()
    for (const visitor of [reader, writer]) {
      expect((await visitor.get(`/channels/${id}`)).text).not.toMatch(/Send a test|Mute|Edit|New secret|Delete/)
      for (const rest of READS.slice(1)) expect((await visitor.get(`/channels/${id}${rest}`)).status).toBe(403)
      for (const rest of CHANGES) expect((await visitor.post(`/channels/${id}${rest}`, FORM)).status).toBe(403)
      expect((await visitor.get('/channels/new?kind=webhook')).status).toBe(403)
      expect((await visitor.post('/channels/new', FORM)).status).toBe(403)
    }
    expect(await read(id)).toMatchObject({ name: 'Pager', muted: false })
  })

  it('of a channel that a HeartbeatChannel declares name it, and change nothing', async () => {
    const id = await makeChannel()
    await api.database.query(
      `insert into declared_channels (kubernetes_cluster, kubernetes_namespace, kubernetes_name, channel_id)
        values ('prod', 'shop', $2, $1)`,
      [id, HOSTILE],
    )
    const path = `/channels/${id}`
    const { text } = await admin.get(path)
    expect(text).toContain('managed by Kubernetes')
    expect(text).toContain(`shop/${ESCAPED}`)
    expect(text).not.toContain(HOSTILE)
    expect(text).toContain('Send a test')
    expect(text).not.toMatch(/href="[^"]*\/(edit|delete|mute|rotate-secret)"|New secret/)
    expect((await reader.get(path)).text).toContain('managed by Kubernetes')
    for (const rest of ['/edit', '/mute', '/delete', '/rotate-secret']) {
      expect((await admin.get(path + rest)).status, rest).toBe(409)
      expect((await admin.post(path + rest, FORM)).status, rest).toBe(409)
    }
    expect((await admin.post(`${path}/unmute`, FORM)).status).toBe(409)
    expect(await read(id)).toMatchObject({
      name: 'Pager',
      managed_by: 'kubernetes',
      kubernetes: { cluster: 'prod', namespace: 'shop', name: HOSTILE },
    })
  })

  it('of the channel of the installation show no address, and change nothing', async () => {
    await api.database.query(
      `insert into channels (id, kind, name, event_types, created_at, seen_at) values ($1, 'alertmanager', 'Of the installation', '{check.down}', now(), now())`,
      [INSTALLATION_CHANNEL_ID],
    )
    const path = `/channels/${INSTALLATION_CHANNEL_ID}`
    const { text } = await admin.get(path)
    expect(text).toContain('ALERTMANAGER_URL')
    expect(text).toContain('Send a test')
    expect(text).not.toMatch(/href="[^"]*\/(edit|delete|mute)"/)
    for (const rest of ['/edit', '/mute', '/delete']) {
      expect((await admin.get(path + rest)).status).toBe(409)
      expect((await admin.post(path + rest, FORM)).status).toBe(409)
    }
  })
})
