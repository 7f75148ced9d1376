// What `helm test` runs in a pod: with API_URL, PING_URL and API_KEY through the life of a check. Exit status 1, and a sentence,
// when a step fails. New pods may take a moment to be reachable, so what may pass is tried again for half a minute.

const { API_URL, PING_URL, API_KEY } = process.env
const PATIENCE_MS = 30_000
const PAUSE_MS = 1_000
const REQUEST_MS = 5_000

/** The service has answered, and will answer the same again. */
class Refused extends Error {}

async function call(method, url, headers = {}, body = undefined) {
  const response = await fetch(url, { method, headers, body, signal: AbortSignal.timeout(REQUEST_MS) })
  const text = await response.text()
  if (response.ok) return text
  const path = new URL(url).pathname.replace(/[0-9a-f-]{36}/, '...')
  const hint = response.status === 401 ? ' (is BOOTSTRAP_API_KEY still a key of this database?)' : ''
  const Kind = response.status < 500 ? Refused : Error
  throw new Kind(`${method} ${path} answered ${response.status}: ${text.trim()}${hint}`)
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
      if (!(error instanceof Refused) && Date.now() < limit) continue
      const cause = error.cause === undefined ? '' : ` (${error.cause.message})`
      throw new Error(`not ok: ${what}: ${error.message}${cause}`)
    }
}

async function run() {
  const { projects } = await step('the management API answers', () => manage('GET', '/projects'))
  const fields = { project_id: projects[0].id, name: 'helm test', period_seconds: 3600, grace_seconds: 60 }
  const check = await step('a check is made', () => manage('POST', '/checks', fields))
  try {
    await step('it is pinged', () => call('GET', `${PING_URL}/ping/${check.public_id}`))
    await step('it is up', async () => {
      const { status } = await manage('GET', `/checks/${check.id}`)
      if (status !== 'up') throw new Error(`its status is ${status}`)
    })
  } finally {
    await step('it is deleted', () => manage('DELETE', `/checks/${check.id}`))
  }
}

run().catch((error) => {
  console.error(error.message)
  process.exitCode = 1
})
