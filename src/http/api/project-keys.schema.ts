import { z } from 'zod'
import * as field from './fields.ts'

const PATTERN = '^[A-Za-z0-9]{22}$'

const key = (description: string) => z.string().meta({ pattern: PATTERN, description })

const PING_KEY =
  'Key of the addresses `{ping_url}/ping/{ping_key}/{slug}`: the right to ping all checks of the project.'
const BADGE_KEY = 'Key of the addresses `/badge/{badge_key}/{slug}.svg`: the right to see the statuses of the project.'

export const PingKey = field.shape('PingKey', {
  ping_key: key(PING_KEY).nullable().meta({ description: 'Null: the project has none.' }),
})

export const NewPingKey = field.shape('NewPingKey', { ping_key: key(PING_KEY) })

export const BadgeKey = field.shape('BadgeKey', {
  badge_key: key(BADGE_KEY).nullable().meta({ description: 'Null: the project has none.' }),
})

export const NewBadgeKey = field.shape('NewBadgeKey', { badge_key: key(BADGE_KEY) })
