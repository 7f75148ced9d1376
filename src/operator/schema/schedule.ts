/** The fields of a schedule, as a check and a silence have them. Only the shape: the operator checks what it means. */

import { LIMITS } from '../../domain/limits.ts'
import { shaped, text } from './fields.ts'

const MACROS = 'yearly|annually|monthly|weekly|daily|midnight|hourly'
const CRON_FIELD = '[0-9A-Za-z*?/,+-]+'
/** Part of what Go takes for white space: what people type. */
const SPACE = String.raw`[ \t\r\n]`
/** Rules of their own report `TZ=` and `@every`: one mistake, one fault. */
const cronShape = shaped(
  `@(${MACROS})|${SPACE}*${CRON_FIELD}(${SPACE}+${CRON_FIELD}){4}${SPACE}*|.*TZ=.*|@every.*`,
  'must have 5 fields (minute, hour, day of month, month, day of week) such as "30 2 * * *", or be one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually',
)

/** `instead`: what to do where the time of day does not matter. */
export const scheduleText = ({ description, instead }: { readonly description: string; readonly instead: string }) =>
  text({
    max: LIMITS.scheduleLength,
    description,
    rules: [
      {
        cel: "!self.contains('TZ=')",
        holds: (value) => !value.includes('TZ='),
        message: 'must not hold a time zone: give it as spec.timeZone, beside the schedule',
        reason: 'FieldValueInvalid',
      },
      {
        cel: "!self.startsWith('@every')",
        holds: (value) => !value.startsWith('@every'),
        message: `must not be @every, which has no fixed times of day: ${instead}`,
        reason: 'FieldValueInvalid',
      },
      cronShape,
    ],
  })

/** `when`: with which other fields. */
export const timeZoneText = (when: string) =>
  text({
    max: LIMITS.nameLength,
    description: `IANA time zone of the schedule, ${when}. Default: UTC. Example: Europe/Berlin`,
    rules: [
      shaped(
        '[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*',
        'must be the name of an IANA time zone such as Europe/Berlin or Etc/UTC',
      ),
    ],
  })
