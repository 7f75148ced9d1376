// `helm test` runs this in a pod: with API_URL, PING_URL and API_KEY it creates, pings and deletes a check. If a step fails, the
// exit status is 1 and the message says why. New pods may not be reachable at once, so each step is retried for half a minute.

const { API_URL, PING_URL, API_KEY } = process.env
const PATIENCE_MS = 30_000
const PAUSE_MS = 1_000
const REQUEST_MS = 5_000

/** A response that a retry would not change. */
class Rejected extends Error {}

async function call(method, url, headers = {}, body = undefined) {
  const response = await fetch(url, { method, headers, body, signal: AbortSignal.timeout(REQUEST_MS) })
  const text = await response.text()
  if (response.ok) return text
  const path = new URL(url).pathname.replace(/[0-9a-f-]{36}/, '...')
  const hint = response.status === 401 ? ' (is BOOTSTRAP_API_KEY still a key of this database?)' : ''
  const Kind = response.status < 500 ? Rejected : Error
  throw new Kind(`${method} ${path} returned ${response.status}: ${text.trim()}${hint}`)
}

async function manage(method, path, json) {
  const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' }
  const text = await call(method, `${API_URL}${path}`, headers, json === undefined ? undefined : JSON.stringify(json))
  return text === '' ? null : JSON.parse(text)
}

async function step(what, action) {
  for (const limit = Date.now() + PATIENCE_MS; ; await new Promise((resolve) => setTimeout(resolve, PAUSE_MS)))
    try {
      const result = await action()
      console.log(`ok: ${what}`)
      return result
    } catch (error) {
      if (!(error instanceof Rejected) && Date.now() < limit) continue
      const cause = error.cause === undefined ? '' : ` (${error.cause.message})`
      throw new Error(`not ok: ${what}: ${error.message}${cause}`)
    }
}

async function run() {
  const { projects } = await step('the management API responds', () => manage('GET', '/projects'))
  const fields = { project_id: projects[0].id, name: 'helm test', period_seconds: 3600, grace_seconds: 60 }
  const check = await step('a check is created', () => manage('POST', '/checks', fields))
  try {
    await step('a ping is accepted', () => call('GET', `${PING_URL}/ping/${check.public_id}`))
    await step('the check is up', async () => {
      const { status } = await manage('GET', `/checks/${check.id}`)
      if (status !== 'up') throw new Error(`its status is ${status}`)
    })
  } finally {
    await step('the check is deleted', () => manage('DELETE', `/checks/${check.id}`))
  }
}

run().catch((error) => {
  console.error(error.message)
  process.exitCode = 1
})
