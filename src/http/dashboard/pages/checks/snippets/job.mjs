import { setTimeout } from 'node:timers/promises'

const PING_URL = '{{url}}'

async function main() {
  console.log('here goes your job')
}

async function heartbeat(signal, text = '') {
  const body = Buffer.from(text).subarray(-10_000)
  let problem
  for (const waitMs of [0, 1_000, 2_000, 4_000]) {
    await setTimeout(waitMs)
    try {
      const options = { method: 'POST', body, signal: AbortSignal.timeout(10_000) }
      const response = await fetch(PING_URL + signal, options)
      problem = `${response.status} ${await response.text()}`
      if (response.ok) return
      if (response.status < 500) break
    } catch (error) {
      problem = error
    }
  }
  console.error('the heartbeat could not be sent:', problem)
}

await heartbeat('/start')
try {
  await main()
} catch (error) {
  await heartbeat('/1', String(error?.stack ?? error))
  throw error
}
await heartbeat('/0')
