/** What people write into OIDC_ISSUERS. */

import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type Config, readConfig } from '../../../src/config/config.ts'
import { faultsOf as faultsOfConfig } from './faults.ts'

const ISSUER = 'https://login.example.com'
const AUDIENCE = 'heartbeat-operator'

const readText = (text: string): Config => readConfig({ OIDC_ISSUERS: text }, false)
const readEntry = (fields: object) => readText(JSON.stringify([{ issuer: ISSUER, audience: AUDIENCE, ...fields }]))
const faultsOf = (text: string) => faultsOfConfig({ OIDC_ISSUERS: text })
const faultsOfEntry = (fields: object) => faultsOf(JSON.stringify([{ issuer: ISSUER, audience: AUDIENCE, ...fields }]))

const jwkOf = (key: KeyObject) => key.export({ format: 'jwk' })
const rsa = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength })
const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve })
const ed25519 = generateKeyPairSync('ed25519')
const PUBLIC = jwkOf(ed25519.publicKey)

describe('OIDC_ISSUERS', () => {
  it('is not needed', () => {
    expect(readConfig({}, false).oidcIssuers).toEqual([])
    expect(readText('[]').oidcIssuers).toEqual([])
  })

  it('is parsed into issuers', () => {
    const jwks = { keys: [{ ...PUBLIC, kid: 'one', use: 'sig' }] }
    const text = JSON.stringify([
      { issuer: ISSUER, audience: AUDIENCE },
      { issuer: `${ISSUER}/`, audience: 'two', users: { 'system:serviceaccount:ci:deploy': 'CI@example.com' }, jwks },
    ])
    expect(readText(text).oidcIssuers).toEqual([
      { issuer: ISSUER, audience: AUDIENCE, users: new Map(), jwks: null },
      {
        issuer: `${ISSUER}/`,
        audience: 'two',
        users: new Map([['system:serviceaccount:ci:deploy', 'CI@example.com']]),
        jwks,
      },
    ])
  })

  it.each(['', ' ', 'https://login.example.com', '{}', '{"issuer":"https://login.example.com"}', '[', 'null', '"[]"'])(
    'may not be %j',
    (text) => {
      if (text === '') return expect(faultsOf(text)).toEqual([]) // Left empty by Helm: the same as not set.
      expect(faultsOf(text)).toEqual([
        'OIDC_ISSUERS must be a JSON array such as [{"issuer":"https://login.example.com","audience":"heartbeat-operator"}]',
      ])
    },
  )

  it('has twenty entries at most', () => {
    const entries = (count: number) =>
      JSON.stringify(Array.from({ length: count }, (_, at) => ({ issuer: `${ISSUER}/${at}`, audience: AUDIENCE })))
    expect(faultsOf(entries(20))).toEqual([])
    expect(faultsOf(entries(21))).toEqual(['OIDC_ISSUERS must have at most 20 entries, and has 21'])
  })

  it('has one entry for each issuer', () => {
    const entries = [ISSUER, `${ISSUER}/`, ISSUER].map((issuer) => ({ issuer, audience: AUDIENCE }))
    expect(faultsOf(JSON.stringify(entries))).toEqual([
      'OIDC_ISSUERS entry 3: issuer is the same as in an entry before it: make one entry of them',
    ])
  })

  it('reports all faults at once, each with its entry', () => {
    expect(faultsOf(JSON.stringify([7, { issuer: ISSUER, audience: '', clientId: 'x', 'a\nb': 1 }, {}]))).toEqual([
      'OIDC_ISSUERS entry 1: must be an object',
      'OIDC_ISSUERS entry 2: audience must have 1 to 255 characters',
      'OIDC_ISSUERS entry 2: "clientId", "a\\nb" is not a known field: the fields are issuer, audience, users and jwks',
      'OIDC_ISSUERS entry 3: issuer must be text',
      'OIDC_ISSUERS entry 3: audience must be text',
    ])
  })
})

describe('an issuer', () => {
  it.each([
    'https://login.example.com/',
    'https://login.example.com:8443/realms/one/v2.0',
    'http://localhost:8080',
    'http://127.0.0.1:1',
    'http://127.255.255.254',
    'http://[::1]:8080/realms/one',
    `https://login.example.com/${'x'.repeat(2_048 - 26)}`,
  ])('may be %s', (issuer) => {
    expect(readEntry({ issuer }).oidcIssuers).toMatchObject([{ issuer }])
  })

  it.each([
    'login.example.com',
    'http://login.example.com',
    'http://127.0.0.1.example.com',
    'http://128.0.0.1',
    'http://localhost.example.com',
    'http://[::2]',
    'ftp://login.example.com',
    'https:login.example.com',
    'https://robot:hunter2@login.example.com',
    'https://hunter2@login.example.com',
    'https://login.example.com?',
    'https://login.example.com?token=hunter2',
    'https://login.example.com#',
    'https://login.example.com ',
    'https://login.example.com\n',
    'https://login.exämple.com',
    `https://login.example.com/${'x'.repeat(2_049 - 26)}`,
  ])('may not be %j', (issuer) => {
    expect(faultsOfEntry({ issuer })).toEqual([
      'OIDC_ISSUERS entry 1: issuer must be a URL such as https://login.example.com, without credentials, query or fragment',
    ])
  })

  it('must be text', () => {
    expect(faultsOfEntry({ issuer: [ISSUER] })).toEqual(['OIDC_ISSUERS entry 1: issuer must be text'])
  })
})

describe('an audience', () => {
  it('has 1 to 255 characters', () => {
    expect(faultsOfEntry({ audience: 'x' })).toEqual([])
    expect(faultsOfEntry({ audience: 'x'.repeat(255) })).toEqual([])
    expect(faultsOfEntry({ audience: 'x'.repeat(256) })).toEqual([
      'OIDC_ISSUERS entry 1: audience must have 1 to 255 characters',
    ])
    expect(faultsOfEntry({ audience: [AUDIENCE] })).toEqual(['OIDC_ISSUERS entry 1: audience must be text'])
  })
})

describe('users', () => {
  const address = (length: number) => `a@${'b'.repeat(length - 6)}.com`

  it('are e-mail addresses by subject', () => {
    expect(faultsOfEntry({ users: {} })).toEqual([])
    expect(faultsOfEntry({ users: { x: address(254), ['y'.repeat(255)]: 'a@b' } })).toEqual([])
  })

  it.each<[string, unknown, string]>([
    ['a list', ['ci@example.com'], 'users must be an object of e-mail addresses by subject'],
    ['text', 'ci@example.com', 'users must be an object of e-mail addresses by subject'],
    ['null', null, 'users must be an object of e-mail addresses by subject'],
    ['no address', { ci: 'robot' }, 'users["ci"] must be an e-mail address'],
    ['an address with a blank', { ci: ' ci@example.com' }, 'users["ci"] must be an e-mail address'],
    ['an address that is too long', { ci: address(255) }, 'users["ci"] must be an e-mail address'],
    ['a number', { 'c\ni': 1 }, 'users["c\\ni"] must be an e-mail address'],
    ['a subject without a letter', { '': 'ci@example.com' }, 'users must have subjects of 1 to 255 characters'],
    ['a long subject', { ['x'.repeat(256)]: 'ci@example.com' }, 'users must have subjects of 1 to 255 characters'],
  ])('may not be %s', (_, users, fault) => {
    expect(faultsOfEntry({ users })).toEqual([`OIDC_ISSUERS entry 1: ${fault}`])
  })
})

describe('jwks', () => {
  const faultsOfKeys = (...keys: unknown[]) => faultsOfEntry({ jwks: { keys } })

  it.each<[string, object]>([
    ['RSA of 2048 bits', jwkOf(rsa(2_048).publicKey)],
    ['P-256', jwkOf(ec('P-256').publicKey)],
    ['P-384', jwkOf(ec('P-384').publicKey)],
    ['P-521', jwkOf(ec('P-521').publicKey)],
    ['Ed25519', PUBLIC],
    ['what kubectl shows', { use: 'sig', alg: 'ES256', kid: 'x', ...jwkOf(ec('P-256').publicKey) }],
  ])('may hold a key of %s', (_, key) => {
    expect(faultsOfKeys(PUBLIC, key)).toEqual([])
  })

  it.each<[string, unknown]>([
    ['text', PUBLIC.x],
    ['a list', [PUBLIC]],
    ['null', null],
    ['one key alone', PUBLIC],
    ['keys by name', { keys: { one: PUBLIC } }],
  ])('may not be %s', (_, jwks) => {
    expect(faultsOfEntry({ jwks })).toEqual(['OIDC_ISSUERS entry 1: jwks must be an object such as {"keys":[...]}'])
  })

  it('has 1 to 100 keys', () => {
    expect(faultsOfKeys()).toEqual(['OIDC_ISSUERS entry 1: jwks must hold 1 to 100 keys'])
    expect(faultsOfKeys(...Array(100).fill(PUBLIC))).toEqual([])
    expect(faultsOfKeys(...Array(101).fill(PUBLIC))).toEqual(['OIDC_ISSUERS entry 1: jwks must hold 1 to 100 keys'])
  })

  it.each<[string, object]>([
    ['an Ed25519 key', jwkOf(ed25519.privateKey)],
    ['a key of P-256', jwkOf(ec('P-256').privateKey)],
    ['an RSA key', jwkOf(rsa(2_048).privateKey)],
    ['an RSA key in part', { ...jwkOf(rsa(2_048).privateKey), d: undefined }],
    ['a secret', { kty: 'oct', k: Buffer.from('hunter2').toString('base64url') }],
    ['an empty private part', { ...PUBLIC, d: '' }],
  ])('may not hold the private half of %s, and nothing of it is shown', (_, key) => {
    const faults = faultsOfKeys(PUBLIC, key)
    expect(faults).toEqual([
      'OIDC_ISSUERS entry 1: jwks must hold public keys only: key 2 is a private or symmetric key',
    ])
  })

  it.each<[string, unknown]>([
    ['RSA of 2047 bits', jwkOf(rsa(2_047).publicKey)],
    ['RSA-PSS by its name', { ...jwkOf(rsa(2_048).publicKey), kty: 'RSA-PSS' }],
    ['secp256k1', jwkOf(ec('secp256k1').publicKey)],
    ['X25519', jwkOf(generateKeyPairSync('x25519').publicKey)],
    ['no point of its curve', { ...jwkOf(ec('P-256').publicKey), y: Buffer.alloc(32).toString('base64url') }],
    ['no kind', { kid: 'x' }],
    ['no object', 'hunter2'],
    ['null', null],
  ])('may not hold a key of %s', (_, key) => {
    expect(faultsOfKeys(PUBLIC, key)).toEqual([
      'OIDC_ISSUERS entry 1: jwks must hold public keys of RSA (2048 bits or more), P-256, P-384, P-521 or Ed25519: key 2 is not one of them',
    ])
  })
})
