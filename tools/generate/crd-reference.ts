/** docs/reference/: the fields of a resource, from its definition. */

import type { DEFINITIONS } from '../../src/operator/schema/definition.ts'

interface Schema {
  readonly type?: string
  readonly description?: string
  readonly format?: string
  readonly enum?: readonly string[]
  readonly default?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly additionalProperties?: Schema
}

interface Column {
  readonly name: string
  readonly jsonPath: string
  readonly description: string
  readonly priority?: number
}

/** `uses`: links to where it is explained. */
export function renderCrdReference(definition: (typeof DEFINITIONS)[keyof typeof DEFINITIONS], uses: string): string {
  const { group, names, versions } = definition.spec
  const version = versions[0]!
  const { spec, status } = version.schema.openAPIV3Schema.properties as unknown as Record<string, Schema>
  return `<!-- Made by \`npm run manifests\` from src/operator/schema: change it there. -->
# ${names.kind}

\`${group}/${version.name}\`, kind \`${names.kind}\`, short name \`${names.shortNames.join('`, `')}\`, category \`${names.categories.join('`, `')}\`. How to use it:
${uses}. In a cluster: \`kubectl explain ${names.shortNames[0]} --recursive\`.

## Spec

${tableOf(spec!)}
## Status

${tableOf(status!)}
## Columns of kubectl get

| Column | With | Field | Meaning |
|---|---|---|---|
${(version.additionalPrinterColumns as unknown as readonly Column[]).map(({ name, jsonPath, description, priority }) => `| ${name.toUpperCase()} | ${priority === 1 ? '`-o wide`' : ''} | \`${jsonPath}\` | ${description} |\n`).join('')}
Field selectors: ${version.selectableFields.map(({ jsonPath }) => `\`${jsonPath.slice(1)}\``).join(', ')}.
`
}

function tableOf(schema: Schema): string {
  const rows = listFields(schema, '').map(({ path, field, isRequired }) => {
    const facts = [typeOf(field), ...boundsOf(field), ...(isRequired ? ['required'] : [])].join('; ')
    return `| \`${path}\` | ${facts} | ${cell(field.description ?? '')} |\n`
  })
  return `| Field | Type | Meaning |\n|---|---|---|\n${rows.join('')}`
}

interface Field {
  readonly path: string
  readonly field: Schema
  readonly isRequired: boolean
}

function listFields({ properties = {}, required = [] }: Schema, prefix: string): Field[] {
  return Object.entries(properties).flatMap(([name, field]) => {
    const path = `${prefix}${name}`
    const below =
      field.items?.properties === undefined ? listFields(field, `${path}.`) : listFields(field.items, `${path}[].`)
    return [{ path, field, isRequired: required.includes(name) }, ...below]
  })
}

function typeOf({ type, format, items, additionalProperties }: Schema): string {
  if (type === 'array') return `list of ${items?.type}`
  if (additionalProperties !== undefined) return `map of ${additionalProperties.type}`
  return format === undefined ? (type ?? '') : `${type} (${format})`
}

function boundsOf(field: Schema): string[] {
  const number = (value: number) => value.toLocaleString('en')
  const { minimum, maximum, maxLength, maxItems, maxProperties } = field
  return [
    ...(field.enum === undefined ? [] : [field.enum.map((value) => `\`${value}\``).join(', ')]),
    ...(maximum === undefined ? [] : [`${number(minimum ?? 0)} to ${number(maximum)}`]),
    ...(maxLength === undefined ? [] : [`at most ${number(maxLength)} characters`]),
    ...[maxItems, maxProperties].flatMap((most) => (most === undefined ? [] : [`at most ${number(most)}`])),
    ...(field.default === undefined ? [] : [`default \`${field.default}\``]),
  ]
}

/** One line of a table. */
const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
