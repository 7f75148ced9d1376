import { describe, expect, it } from 'vitest'
import { readArguments, UsageError } from '../../../src/import/arguments.ts'

const HEALTHCHECKS = ['healthchecks', '--url', 'https://hc.example.com/', '--key', 'k3y', '--project', 'payments']
const KUMA = ['uptime-kuma', '--file', 'kuma.db', '--project', 'payments']

const faultOf = (given: readonly string[], surroundings?: Parameters<typeof readArguments>[1]): string => {
  try {
    readArguments(given, surroundings)
  } catch (error) {
    if (error instanceof UsageError) return error.message
  }
  throw new Error('it did not fail as it should')
}

describe('the command line of the import', () => {
  it('names a source and a project', () => {
    expect(readArguments(HEALTHCHECKS)).toEqual({
      source: 'healthchecks',
      url: new URL('https://hc.example.com/'),
      key: 'k3y',
      project: 'payments',
      isDryRun: false,
    })
    const file = { source: 'uptime-kuma', file: 'kuma.db', project: 'payments', isDryRun: true }
    expect(readArguments([...KUMA, '--dry-run'])).toEqual(file)
  })

  const withoutKey = HEALTHCHECKS.filter((text) => text !== '--key' && text !== 'k3y')
  const env = { HEALTHCHECKS_API_KEY: 's3cret-of-env' }

  it('takes the key from a variable, which --key overrides', () => {
    expect(readArguments(withoutKey, { env })).toMatchObject({ key: 's3cret-of-env' })
    expect(readArguments(HEALTHCHECKS, { env })).toMatchObject({ key: 'k3y' })
  })

  it('takes the key from standard input, and reads that for --key - alone', () => {
    const readInput = () => 's3cret-of-input\r\n'
    expect(readArguments(replaced('k3y', '-'), { env, readInput })).toMatchObject({ key: 's3cret-of-input' })
    const refuse = () => {
      throw new Error('it was read')
    }
    expect(readArguments(withoutKey, { env, readInput: refuse })).toMatchObject({ key: 's3cret-of-env' })
    expect(readArguments(KUMA, { env, readInput: refuse })).toMatchObject({ source: 'uptime-kuma' })
  })

  it.each([
    ['no key anywhere', withoutKey, {}, '--key is missing: give --key - and the key on standard input'],
    ['an empty variable', withoutKey, { env: { HEALTHCHECKS_API_KEY: '' } }, '--key is missing'],
    [
      'a variable with a space',
      withoutKey,
      { env: { HEALTHCHECKS_API_KEY: 's3cret two' } },
      '--key must be an API key',
    ],
    ['an empty input', replaced('k3y', '-'), { readInput: () => '\n' }, '--key must be an API key'],
    ['several lines', replaced('k3y', '-'), { readInput: () => 's3cret\ntwo\n' }, '--key must be an API key'],
    [
      'an input that is closed',
      replaced('k3y', '-'),
      {
        readInput: () => {
          throw new Error('EBADF')
        },
      },
      '--key - is given, and standard input cannot be read',
    ],
  ])('says what is wrong with %s, and not the key', (_, given, surroundings, fault) => {
    const message = faultOf(given, surroundings)
    expect(message.startsWith(fault)).toBe(true)
    expect(message).not.toMatch(/s3cret/)
  })

  it.each([
    ['no source', [], 'name what to import from'],
    ['another source', ['nagios'], 'nothing can be imported from there'],
    ['no project', KUMA.slice(0, -2), '--project is missing'],
    ['no file', ['uptime-kuma', '--project', 'payments'], '--file is missing'],
    ['no key', HEALTHCHECKS.filter((text) => text !== '--key' && text !== 'k3y'), '--key is missing'],
    ['an option of the other source', [...KUMA, '--url', 'x'], 'there is no option --url'],
    ['an unknown option', [...KUMA, '--force'], 'there is no option --force'],
    ['an argument too many', [...KUMA, 's3cret'], 'an argument is not understood'],
    ['an address of another kind', replaced('https://hc.example.com/', 'ftp://hc'), '--url must be an address'],
    ['an address with credentials', replaced('https://hc.example.com/', 'https://me:s3cret@hc'), '--url must be'],
    ['a key with a line break', replaced('k3y', 's3cret\n'), '--key must be an API key'],
  ] as const)('says what is wrong with %s, and how it is used', (_, given, fault) => {
    const message = faultOf(given)
    expect(message.startsWith(fault)).toBe(true)
    expect(message).toContain('usage: node src/main.ts import healthchecks')
    expect(message).not.toContain('s3cret')
  })
})

function replaced(was: string, is: string): string[] {
  return HEALTHCHECKS.map((text) => (text === was ? is : text))
}
