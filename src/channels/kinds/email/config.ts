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
/** The excluded characters have a meaning in a list of addresses (RFC 5322): they would make several recipients of one. */
const recipient = z
  .string(RECIPIENT_RULE)
  .trim()
  .refine((text) => isEmail(text) && !/[,;:()[\]\\]/.test(text), RECIPIENT_RULE)
  .meta({ format: 'email' })

export const emailConfig: KindConfig<EmailSettings, EmailConfig, EmailConfig> = {
  input: configOf({
    to: listOf(recipient, MAX_RECIPIENTS, 'e-mail addresses').meta({ description: 'The recipients.' }),
  }),
  shown: z.object({ to: z.array(z.string()) }),

  toSettings: ({ to }) => ({ kind: 'email', to }),
  show: ({ to }) => ({ to }),
}
