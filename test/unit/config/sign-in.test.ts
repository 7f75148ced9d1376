/** What people write into SIGN_IN. Rules that it shares with OIDC_ISSUERS are tested there (issuers.test.ts). */

import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { type Config, readConfig } from '../../../src/config/config.ts'
import { faultsOf as faultsOfConfig } from './faults.ts'

const ENTRY = { name: 'Example', issuer: 'https://login.example.com', client_id: 'heartbeat', client_secret: 'hunter2' }

const read = (entries: unknown): Config => readConfig({ SIGN_IN: JSON.stringify(entries) }, false)
const faultsOf = (entries: unknown) => faultsOfConfig({ SIGN_IN: JSON.stringify(entries) })

describe('SIGN_IN', () => {
  it('is not needed', () => {
    expect(readConfig({}, false).secrets.signIn).toEqual([])
    expect(readConfig({ SIGN_IN: '' }, false).secrets.signIn).toEqual([])
    expect(read([]).secrets.signIn).toEqual([])
  })

  it('is parsed into providers, in their order, and is no part of what is printed', () => {
    const users = { ann: 'Ann@example.com' }
    const config = read([ENTRY, { ...ENTRY, name: 'b-2', users, create_users: { scope: 'read' } }])
    const { name, issuer } = ENTRY
    const shared = { issuer, clientId: 'heartbeat', clientSecret: 'hunter2' }
    expect(config.secrets.signIn).toEqual([
      { ...shared, name, users: new Map(), newUserScope: null },
      { ...shared, name: 'b-2', users: new Map([['ann', 'Ann@example.com']]), newUserScope: 'read' },
    ])
    const { secrets: _, ...printed } = config
    expect(inspect(printed, { depth: 10 })).not.toContain('hunter2')
  })

  it.each([{}, null, 'Example', ENTRY])('may not be %j', (value) => {
    expect(faultsOf(value)).toEqual([
      'SIGN_IN must be a JSON array such as [{"name":"Example","issuer":"https://login.example.com","client_id":"heartbeat","client_secret":"..."}]',
    ])
  })

  it('may not be cut off, and nothing of it is shown', () => {
    expect(() => readConfig({ SIGN_IN: '[{"client_secret":"hunter2"' }, false)).toThrow(/^(?:(?!hunter2)[\s\S])*$/)
  })

  it('has twenty entries at most', () => {
    const entries = (count: number) => Array.from({ length: count }, (_, at) => ({ ...ENTRY, name: `p${at}` }))
    expect(faultsOf(entries(20))).toEqual([])
    expect(faultsOf(entries(21))).toEqual(['SIGN_IN must have at most 20 entries, and has 21'])
  })

  it('reports all faults at once, each with its entry, beside those of other variables', () => {
    const entries = [
      7,
      {},
      { ...ENTRY, name: 'a b', issuer: 'http://login.example.com', client_id: '', client_secret: '', scopes: 1 },
      { ...ENTRY, users: { ann: 'x' }, create_users: { scope: 'owner' } },
    ]
    expect(() => readConfig({ SIGN_IN: JSON.stringify(entries), DASHBOARD: 'yes' }, false)).toThrow(
      expect.objectContaining({
        faults: [
          'DASHBOARD must be one of on, off',
          'SIGN_IN entry 1: must be an object',
          'SIGN_IN entry 2: name must be text',
          'SIGN_IN entry 2: issuer must be text',
          'SIGN_IN entry 2: client_id must be text',
          'SIGN_IN entry 2: client_secret must be text',
          'SIGN_IN entry 3: name must be 1 to 32 letters, digits and -',
          'SIGN_IN entry 3: issuer must be a URL such as https://login.example.com, without credentials, query or fragment',
          'SIGN_IN entry 3: client_id must have 1 to 255 characters',
          'SIGN_IN entry 3: client_secret must have 1 to 2,048 characters',
          'SIGN_IN entry 3: "scopes" is not a known field: the fields are name, issuer, client_id, client_secret, users and create_users',
          'SIGN_IN entry 4: users["ann"] must be an e-mail address',
          'SIGN_IN entry 4: create_users must be an object such as {"scope":"read"}, with a scope of read, write, admin',
        ],
      }),
    )
  })
})

describe('a provider', () => {
  it('has a name of its own', () => {
    expect(faultsOf([ENTRY, { ...ENTRY, name: 'example' }])).toEqual([])
    expect(faultsOf([ENTRY, { ...ENTRY, issuer: 'https://other.example.com' }])).toEqual([
      'SIGN_IN entry 2: name is the same as in an entry before it: choose another',
    ])
  })

  it.each(['a', 'A-1', '-', 'x'.repeat(32)])('may be named %s', (name) => {
    expect(faultsOf([{ ...ENTRY, name }])).toEqual([])
  })

  it.each(['', 'x'.repeat(33), 'a b', 'a/b', 'a.b', 'a_b', 'é', '<b>', 'a\n'])('may not be named %j', (name) => {
    expect(faultsOf([{ ...ENTRY, name }])).toEqual(['SIGN_IN entry 1: name must be 1 to 32 letters, digits and -'])
  })

  it('has a secret of 1 to 2,048 characters', () => {
    const fault = 'SIGN_IN entry 1: client_secret must have 1 to 2,048 characters'
    expect(faultsOf([{ ...ENTRY, client_secret: 'x'.repeat(2_048) }])).toEqual([])
    expect(faultsOf([{ ...ENTRY, client_secret: 'x'.repeat(2_049) }])).toEqual([fault])
  })

  it.each(['read', 'write', 'admin'])('may create users of the scope %s', (scope) => {
    expect(read([{ ...ENTRY, create_users: { scope } }]).secrets.signIn).toMatchObject([{ newUserScope: scope }])
  })

  it.each<[string, unknown]>([
    ['text', 'read'],
    ['true', true],
    ['null', null],
    ['no scope', {}],
    ['another field', { scope: 'read', project: 'x' }],
  ])('may not create users by %s', (_, create_users) => {
    expect(faultsOf([{ ...ENTRY, create_users }])).toEqual([
      'SIGN_IN entry 1: create_users must be an object such as {"scope":"read"}, with a scope of read, write, admin',
    ])
  })

  it('has subjects of 1 to 255 characters', () => {
    expect(faultsOf([{ ...ENTRY, users: { ['x'.repeat(256)]: 'ann@example.com' } }])).toEqual([
      'SIGN_IN entry 1: users must have subjects of 1 to 255 characters',
    ])
  })
})

it('DASHBOARD is on, or off', () => {
  expect(readConfig({}, false).isDashboardOn).toBe(true)
  expect(readConfig({ DASHBOARD: 'on' }, false).isDashboardOn).toBe(true)
  expect(readConfig({ DASHBOARD: 'off' }, false).isDashboardOn).toBe(false)
})
