/**
 * The annotations of a CronJob that become fields of the HeartbeatCheck that the operator creates
 * (docs/use/cronjobs.md). Pure.
 */

import {
  ADOPT_ANNOTATION,
  ADOPT_CHECK_ANNOTATION,
  CHECK_NAME_ANNOTATION,
  GROUP,
  INSTALLATION_ANNOTATION,
  PROJECTS_ANNOTATION,
  RECONCILE_ANNOTATION,
  TAKE_OVER_ANNOTATION,
  WATCH_LABEL,
} from '../names.ts'
import { Spec } from '../schema/spec.ts'

/** Fields of a HeartbeatCheck's spec. Left out: the default. */
export interface CopiedFields {
  readonly graceSeconds?: number
  readonly maxRuntimeSeconds?: number
  readonly displayName?: string
  readonly description?: string
  readonly project?: string
}

export type CopiedField = keyof CopiedFields

export interface ReadAnnotations {
  readonly fields: CopiedFields
  /** For people: each names an annotation, its value, and a valid form. */
  readonly faults: readonly string[]
}

interface Copied {
  readonly field: CopiedField
  readonly annotation: string
  readonly isNumber?: true
  readonly example: string
}

export const MAX_RUNTIME_ANNOTATION = `${GROUP}/max-runtime-seconds`

const COPIED: readonly Copied[] = [
  { field: 'graceSeconds', annotation: `${GROUP}/grace-seconds`, isNumber: true, example: '600' },
  { field: 'maxRuntimeSeconds', annotation: MAX_RUNTIME_ANNOTATION, isNumber: true, example: '7200' },
  { field: 'project', annotation: `${GROUP}/project`, example: 'payments' },
  { field: 'displayName', annotation: `${GROUP}/display-name`, example: 'Nightly backup' },
  { field: 'description', annotation: `${GROUP}/description`, example: 'Backs up the shop' },
]
export const PROJECT_ANNOTATION = `${GROUP}/project`

/** Without an effect on a CronJob, but no mistake: they are for other kinds of object. */
const OF_OTHERS = new Set([
  ADOPT_ANNOTATION,
  ADOPT_CHECK_ANNOTATION,
  CHECK_NAME_ANNOTATION,
  INSTALLATION_ANNOTATION,
  PROJECTS_ANNOTATION,
  RECONCILE_ANNOTATION,
  TAKE_OVER_ANNOTATION,
])
const NAMES = COPIED.map(({ annotation }) => annotation)
/** An Event for each would be too many. */
const SHOWN_UNKNOWN = 3

/** An annotation may have 256 KB, and an Event's note 1 KB. */
const SHOWN = 100

/** The rules are those of the HeartbeatCheck's own fields. */
export function readAnnotations(annotations: Readonly<Record<string, string>> = {}): ReadAnnotations {
  const fields: Record<string, string | number> = {}
  const faults: string[] = []
  for (const { field, annotation, isNumber, example } of COPIED) {
    const text = annotations[annotation]
    if (text === undefined) continue
    const value = isNumber ? readNumber(text) : text
    const fault = findFault(field, value)
    if (fault === null) fields[field] = value
    else
      faults.push(
        `annotation ${annotation} ${fault}, such as "${example}", and is ${quote(text)}: the default is used until it is corrected`,
      )
  }
  return { fields, faults: [...faults, ...findUnknown(annotations)] }
}

/** Those with our prefix that are misspelt. */
function findUnknown(annotations: Readonly<Record<string, string>>): readonly string[] {
  return Object.keys(annotations)
    .filter((name) => name.startsWith(`${GROUP}/`) && !NAMES.includes(name) && !OF_OTHERS.has(name))
    .sort()
    .slice(0, SHOWN_UNKNOWN)
    .map((name) => {
      const what =
        name === WATCH_LABEL
          ? 'has no effect: it is a label'
          : `is unknown and has no effect: those of a CronJob are ${NAMES.join(', ')}`
      return `annotation ${name} ${what}`
    })
}

/** Of a label that decides nothing because of its value; null: there is none. */
export function findLabelFault(labels: Readonly<Record<string, string>> = {}): string | null {
  const value = labels[WATCH_LABEL]
  if (value === undefined || value === 'true' || value === 'false') return null
  return `label ${WATCH_LABEL} must be "true" or "false", and is ${quote(value)}: it has no effect until it is corrected`
}

const readNumber = (text: string) => (/^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN)

function findFault(field: CopiedField, value: string | number): string | null {
  // Any spec that is valid without the field.
  const { error } = Spec.safeParse({ periodSeconds: 3_600, [field]: value })
  return error === undefined ? null : error.issues[0]!.message
}

/** In one line, and cut. */
export function quote(text: string): string {
  const characters = Array.from(text)
  return JSON.stringify(characters.length > SHOWN ? `${characters.slice(0, SHOWN).join('')}...` : text)
}
