import { describe, expect, it } from 'vitest'
import { type CheckPlace, decodePlace, encodePlace, orderOf, STATUS_ORDER } from '../../../src/domain/check-order.ts'
import { NOON } from '../../support/builders.ts'

const ID = '0190b8a0-0000-7000-8000-00000000000a'
const LAST_MOMENT = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
const encode = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString('base64url')

it('an order is turned round by a minus before it', () => {
  expect(orderOf('last_ping')).toEqual({ order: 'last_ping', isReverse: false })
  expect(orderOf('-last_ping')).toEqual({ order: 'last_ping', isReverse: true })
})

describe('where a page ended', () => {
  it.each<CheckPlace>([
    { sort: 'created', by: [0], id: ID },
    { sort: '-created', by: [LAST_MOMENT], id: ID },
    { sort: 'name', by: ['nightly backup'], id: ID },
    { sort: '-name', by: ['x'.repeat(1_000)], id: ID },
    { sort: 'status', by: [0, 'nightly'], id: ID },
    { sort: 'status', by: [STATUS_ORDER.length - 1, ''], id: ID },
    { sort: 'last_ping', by: [NOON + 0.5], id: ID },
    { sort: '-due', by: [null], id: ID },
  ])('is read as it was written: %j', (place) => {
    expect(decodePlace(encodePlace(place))).toEqual(place)
  })

  it.each<[string, string]>([
    ['nothing', ''],
    ['no JSON', 'x'],
    ['no list', Buffer.from('{}').toString('base64url')],
    ['an order that is none', encode('size', 1, ID)],
    ['no id', encode('created', NOON)],
    ['an id that is none', encode('created', NOON, 'x')],
    ['an id that is no text', encode('created', NOON, 7)],
    ['too little', encode('status', 0, ID)],
    ['too much', encode('created', NOON, NOON, ID)],
    ['a time before 1970', encode('created', -1, ID)],
    ['a time after 9999', encode('created', LAST_MOMENT + 1, ID)],
    ['a time that is no number', encode('created', '1', ID)],
    ['no time where each check has one', encode('created', null, ID)],
    ['a text instead of a time', encode('due', 'x', ID)],
    ['a name that is too long', encode('name', 'x'.repeat(1_001), ID)],
    ['a name with a control character', encode('name', 'a\nb', ID)],
    ['a name with half a pair', encode('name', '\ud800', ID)],
    ['a number instead of a name', encode('name', 1, ID)],
    ['a rank before the first', encode('status', -1, 'x', ID)],
    ['a rank after the last', encode('status', STATUS_ORDER.length, 'x', ID)],
    ['half a rank', encode('status', 0.5, 'x', ID)],
    ['another spelling of the same', `${encode('created', NOON, ID)}=`],
    ['spaces in its JSON', Buffer.from(`["created", ${NOON}, "${ID}"]`).toString('base64url')],
    ['a text of any length', 'A'.repeat(20_000)],
  ])('is not known from %s', (_, text) => {
    expect(decodePlace(text)).toBeNull()
  })
})
