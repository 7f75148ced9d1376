/** What chats find in untrusted text. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { disarm } from '../../../src/channels/kinds/disarm.ts'
import { findLink } from '../../support/markup.ts'

describe('untrusted text', () => {
  it.each([
    ['@ann and @all', '@\u200bann and @\u200ball'],
    ['#room $USD /stop', '#\u200broom $\u200bUSD /\u200bstop'],
    ['https://evil.example', 'https:\u200b//evil.\u200bexample'],
    ['backup.sh at 10.0.0.1', 'backup.\u200bsh at 10.\u200b0.\u200b0.\u200b1'],
    ['call +1202', 'call +\u200b1202'],
    ['<!here> <:x:1> <MAILTO:a>', '<\u200b!here> <\u200b:x:1> <\u200bMAILTO:a>'],
    ['~town [pay](here) www.', '~\u200btown [pay]\u200b(here) www\u200b.'],
    ['`x`', '`\u200bx`\u200b'],
    ['<backup> a < b ~ 5 [x] 10:30', '<backup> a < b ~ 5 [x] 10:30'],
    ['shop/backup, a + b @ c. 5 $ and #', 'shop/backup, a + b @ c. 5 $ and #'],
  ])('%s is disarmed', (text, disarmed) => {
    expect(disarm(text)).toBe(disarmed)
  })

  it('has no link and no mention, whatever it is', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '.', '/', ':', '@', '#', '$', '+', '1', ' ', '-', '_', 'é') })
    fc.assert(
      fc.property(text, (any) => {
        expect(findLink(disarm(any))).toBeNull()
      }),
    )
  })
})
