import { describe, expect, it } from 'vitest'
import { findUnencrypted, type Sent } from '../../../src/roles/unencrypted.ts'

const ENCRYPTED: Sent = {
  ping: 'https://ping.example.com',
  api: 'https://heartbeat.example.com/api/v1',
  secrets: {
    smtpUrl: 'smtps://user:geheim@mail.example.com:465',
    alertmanagerUrls: ['https://user:geheim@am.example.com'],
    watchdogUrl: 'https://watch.example.com/geheim',
  },
  isDatabaseInClear: false,
  clearChannels: 0,
}
const withSecrets = (secrets: Partial<Sent['secrets']>): Partial<Sent> => ({
  secrets: { ...ENCRYPTED.secrets, ...secrets },
})

describe('what is sent unencrypted', () => {
  it.each<[string | null, Partial<Sent>]>([
    [null, {}],
    ['PING_URL', { ping: 'http://heartbeat-ping.monitoring:8080' }],
    [null, { ping: 'http://127.0.0.1:8080', api: 'http://[::1]:8081/api/v1' }],
    [null, { ping: 'http://localhost:8080', api: null }],
    ['BASE_URL', { api: 'http://192.0.2.1:8081/api/v1' }],
    ['DATABASE_URL', { isDatabaseInClear: true }],
    ['1 channel:', { clearChannels: 1 }],
    ['SMTP_URL', withSecrets({ smtpUrl: 'smtp://mail.example.com' })],
    [null, { ...withSecrets({ smtpUrl: 'smtp://mail.example.com' }), isSmtpTlsRequired: true }],
    [null, withSecrets({ smtpUrl: 'smtp://user:geheim@mail.example.com' })],
    [null, withSecrets({ smtpUrl: undefined, alertmanagerUrls: [], watchdogUrl: null })],
    ['ALERTMANAGER_URL', withSecrets({ alertmanagerUrls: ['https://am-0', 'http://user:geheim@am-1'] })],
    ['WATCHDOG_URL', withSecrets({ watchdogUrl: 'http://watch.example.com/geheim' })],
  ])('has %s for %o', (variable, given) => {
    const found = findUnencrypted({ ...ENCRYPTED, ...given })
    expect(found).toEqual(variable === null ? [] : [expect.stringContaining(variable)])
    expect(found.join()).not.toContain('geheim')
  })
})
