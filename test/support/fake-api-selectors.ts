/** Which objects a request selects by labels and by fields, as far as our code asks: `a=b`, `a!=b`, and of labels `a` and `!a`. */

import { type FakeType, Refused, type Select } from './fake-api-storage.ts'

interface Requirement {
  readonly name: string
  /** `exists` and `absent` are of labels alone. */
  readonly operator: '=' | '!=' | 'exists' | 'absent'
  readonly value: string
}

export function selectLabels(selector: string): (labels: Readonly<Record<string, string>>) => boolean {
  const requirements = parse(selector)
  return (labels) =>
    requirements.every(({ name, operator, value }) => {
      switch (operator) {
        case '=':
          return labels[name] === value
        // Also what has no such label.
        case '!=':
          return labels[name] !== value
        case 'exists':
          return name in labels
        default:
          return !(name in labels)
      }
    })
}

/** By name and namespace every kind can be selected; by other fields, those that its type names. */
export function selectFields(selector: string, { selectableFields = [] }: FakeType): Select {
  const requirements = parse(selector)
  const unknown = requirements.find(
    ({ name }) => !['metadata.name', 'metadata.namespace', ...selectableFields].includes(name),
  )
  if (unknown !== undefined) throw new Refused(400, 'BadRequest', `field label not supported: ${unknown.name}`)
  return (object) =>
    requirements.every(({ name, operator, value }) => (fieldOf(object, name) === value) === (operator === '='))
}

function parse(selector: string): readonly Requirement[] {
  if (selector === '') return []
  return selector.split(',').map((text) => {
    const [, name = '', operator, value = ''] = /^([^=!]+)(?:(==?|!=)(.*))?$/.exec(text.replace(/^!/, '')) ?? []
    if (operator !== undefined) return { name, operator: operator === '!=' ? '!=' : '=', value }
    return { name, operator: text.startsWith('!') ? 'absent' : 'exists', value }
  })
}

/** A field that is not there counts as empty. */
function fieldOf(object: unknown, path: string): string {
  let value = object
  for (const part of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[part]
  return value === undefined || value === null ? '' : String(value)
}
