import { z } from 'zod'
import { isEmail } from '../../../domain/email.ts'
import { rule } from '../../../domain/errors.ts'
import { configOf, listOf } from '../fields.ts'
import type { KindConfig } from '../kind.ts'

export interface EmailSettings {
  readonly kind: 'email'
  readonly to: readonly string[]
}

type EmailConfig = Pick<EmailSettings, 'to'>

const MAX_RECIPIENTS = 20
const RECIPIENT_RULE = rule('must be an e-mail address')
/** These have a meaning in a list of addresses (RFC 5322): they would make several recipients of one. */
const LIST_CHARACTERS = /[,;:()[\]\\]/
const DANGER_RULE = rule('must not begin with -, and have no |, % or quotes before the @')
/** To some mail servers these are an option, a command, or another server to relay to. */
const DANGEROUS_LOCAL_PART = /^-|^[^@]*[|%'"`]/
/** For documents: the addresses of ASCII characters that are accepted. */
const DOCUMENTED_PATTERN =
  '^[!#$&*+./0-9=?A-Z^_a-z{}~][!#$&*+./0-9=?A-Z^_a-z{}~-]{0,63}@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*$'
const recipient = z
  .string(RECIPIENT_RULE)
  .trim()
  .refine((text) => isEmail(text) && !LIST_CHARACTERS.test(text), RECIPIENT_RULE)
  .refine((text) => !DANGEROUS_LOCAL_PART.test(text), DANGER_RULE)
  .meta({ format: 'email', maxLength: 254, pattern: DOCUMENTED_PATTERN })

export const emailConfig: KindConfig<EmailSettings, EmailConfig, EmailConfig> = {
  title: 'E-mail',
  purpose: 'A mail to each address, with a thread for each check.',
  form: [
    {
      name: 'to',
      label: 'Recipients',
      meaning: `An e-mail address on each line, at most ${MAX_RECIPIENTS}.`,
      as: 'lines',
      example: 'ops@example.com',
    },
  ],
  input: configOf({
    to: listOf(recipient, MAX_RECIPIENTS, 'e-mail addresses').meta({ description: 'The recipients.' }),
  }),
  shown: z.object({ to: z.array(z.string()) }),

  toSettings: ({ to }) => ({ kind: 'email', to }),
  show: ({ to }) => ({ to }),
  urlsOf: () => [],
  needsSmtp: true,
}
