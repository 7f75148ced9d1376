/** What happens to good requests on their way to bad ones. */

import type { Random } from '../../support/random.ts'

const LONG = 70_000

/** Texts that some parser, database, log or terminal has stumbled over. */
export const TEXTS: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'x\udfffy',
  '\u202eabc',
  '\ufeff',
  'Ａ１',
  '😀'.repeat(101),
  'İ',
  "'; drop table checks; --",
  '%00',
  '../../../etc/passwd',
  '<script>alert(1)</script>',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what an attacker would send
  '${jndi:ldap://x}',
  '%s%n%x',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'undefined',
  'NaN',
  '0',
  '-1',
  '1e309',
  '9'.repeat(40),
  '1.5',
  '0x10',
  'true',
  '[]',
  '{}',
  'x'.repeat(101),
  'x'.repeat(4_097),
  'x'.repeat(LONG),
]

/** As it stands in JSON text; not all of it is JSON. */
const VALUES: readonly string[] = [
  'null',
  'true',
  '0',
  '-0',
  '-1',
  '1.5',
  '60.0',
  '6e1',
  '1e400',
  '-1e400',
  '9'.repeat(40),
  '2147483648',
  '9007199254740993',
  '[]',
  '{}',
  '[null]',
  '{"__proto__":{"isAdmin":true}}',
  '{"toString":1}',
  '"\\ud800"',
  '"\\u0000"',
  '"\\x"',
  '"\n"',
  'NaN',
  'undefined',
  "'x'",
  '',
  `${'['.repeat(5_000)}${']'.repeat(5_000)}`,
  `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
  '['.repeat(20_000),
]

export function mutateText(random: Random, text: string): string {
  const at = random.int(0, text.length)
  switch (random.int(0, 6)) {
    case 0:
      return text.slice(0, at) + random.pick(TEXTS) + text.slice(at)
    case 1:
      return text.slice(0, at)
    case 2:
      return text.slice(0, at) + random.word(1) + text.slice(at + 1)
    case 3:
      return text.toUpperCase()
    case 4:
      return text + text
    case 5:
      return ` ${text}\t`
    default:
      return random.pick(TEXTS)
  }
}

export function mutateBytes(random: Random, bytes: Buffer): Buffer {
  let mutated = bytes
  for (let left = random.int(1, 4); left > 0; left -= 1) {
    const at = random.int(0, mutated.length)
    const cut = random.pick([0, 0, 1, 1, 5, 50])
    const added = random.chance(0.8)
      ? random.bytes(random.int(0, 4))
      : random.pick([Buffer.from('\r\n'), Buffer.from('\r\n\r\n')])
    mutated = Buffer.concat([mutated.subarray(0, at), added, mutated.subarray(at + cut)])
  }
  return mutated
}

/** JSON text of `value`, more or less. */
export function mutateJson(random: Random, value: unknown): Buffer {
  const text = writeJson(random, value, random.pick([0, 0, 0.05, 0.1, 0.3, 1]))
  const bytes = Buffer.from(text)
  if (random.chance(0.85)) return bytes
  switch (random.int(0, 4)) {
    case 0:
      return bytes.subarray(0, random.int(0, bytes.length))
    case 1:
      return Buffer.concat([Buffer.from('\ufeff'), bytes])
    case 2:
      return Buffer.concat([bytes, Buffer.from(random.pick([',', '}', ' //', '\0', '{}']))])
    case 3:
      return Buffer.from(text, 'utf16le')
    default:
      return mutateBytes(random, bytes)
  }
}

function writeJson(random: Random, value: unknown, rate: number): string {
  if (random.chance(rate)) {
    if (random.chance(0.5)) return random.pick(VALUES)
    return JSON.stringify(typeof value === 'string' ? mutateText(random, value) : random.pick(TEXTS))
  }
  if (Array.isArray(value)) return `[${value.map((item) => writeJson(random, item, rate)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value)
    .filter(() => !random.chance(rate / 2))
    .map(([name, inner]) => `${writeName(random, name, rate)}:${writeJson(random, inner, rate)}`)
  if (random.chance(rate / 2)) fields.push(`${JSON.stringify(random.pick(TEXTS))}:${random.pick(VALUES)}`)
  if (fields.length > 0 && random.chance(rate / 4)) fields.push(fields[0]!)
  return `{${fields.join(random.chance(rate / 10) ? ';' : ',')}}`
}

function writeName(random: Random, name: string, rate: number): string {
  if (!random.chance(rate / 10)) return JSON.stringify(name)
  return random.chance(0.5)
    ? `"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}"`
    : JSON.stringify(mutateText(random, name))
}

/** A part of a path or a query, whose bytes may be written in any way. */
export function mutateTargetPart(random: Random, text: string): string {
  const mutated = mutateText(random, text).slice(0, 5_000)
  switch (random.int(0, 3)) {
    case 0:
      return encodeURIComponent(mutated.toWellFormed())
    case 1:
      return [...Buffer.from(mutated)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
    case 2:
      // Bytes as they are, except for those that would end the request line.
      return Buffer.from(mutated)
        .toString('latin1')
        .replaceAll(/[\0-\x20\x7f]/g, '+')
    default:
      return `${encodeURIComponent(mutated.toWellFormed())}${random.pick(['%', '%zz', '%c3', '%ff%fe', '%00', '%2f', '//', '/..', '/.'])}`
  }
}
