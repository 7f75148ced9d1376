import { z } from 'zod'

const PATTERN = '^[A-Za-z0-9]{22}$'

const key = (description: string) => z.string().meta({ pattern: PATTERN, description })

const PING_KEY =
  'Key of the addresses `{ping_url}/ping/{ping_key}/{slug}`: the right to ping all checks of the project.'
const BADGE_KEY = 'Key of the addresses `/badge/{badge_key}/{slug}.svg`: the right to see the statuses of the project.'

export const PingKey = z
  .object({ ping_key: key(PING_KEY).nullable().meta({ description: 'Null: the project has none.' }) })
  .meta({ id: 'PingKey' })

export const NewPingKey = z.object({ ping_key: key(PING_KEY) }).meta({ id: 'NewPingKey' })

export const BadgeKey = z
  .object({ badge_key: key(BADGE_KEY).nullable().meta({ description: 'Null: the project has none.' }) })
  .meta({ id: 'BadgeKey' })

export const NewBadgeKey = z.object({ badge_key: key(BADGE_KEY) }).meta({ id: 'NewBadgeKey' })
