/** A HeartbeatCheck may have a name of 253 characters, as programs make them: what is shorter than that gets a hash (design, section 6). */

import { expect, it } from 'vitest'
import { labelValueOf, targetNameOf } from '../../src/operator/publish/long-names.ts'
import { urlIn } from '../support/workplace.ts'
import { useScene } from './scene.ts'

const t = useScene({ resyncMs: 600_000 })

const CHECK = 'heartbeat-operator.io/check'
const CHECK_NAME = 'heartbeat-operator.io/check-name'

it('one of 63 characters is the label of its Secret, without an annotation', async () => {
  const name = 'n'.repeat(63)
  await t.place.makeReady(name)
  const { metadata } = (await t.place.find('secrets', `${name}-heartbeat`))!
  expect(metadata.labels).toMatchObject({ [CHECK]: name })
  expect(metadata.annotations ?? {}).not.toHaveProperty([CHECK_NAME])
})

it('two of 253 characters with one beginning have a check, a Secret, a label, the whole name in an annotation, and Events', async () => {
  const names = ['a', 'b'].map((end) => `${'long-name.'.repeat(25)}n-${end}`)
  const urls = new Set<string>()
  for (const name of names) {
    expect(name).toHaveLength(253)
    const { status } = await t.place.makeReady(name)
    expect(status?.published).toEqual({ kind: 'Secret', name: targetNameOf(name) })
    const secret = (await t.place.find('secrets', targetNameOf(name)))!
    expect(secret.metadata.labels).toMatchObject({ [CHECK]: labelValueOf(name) })
    expect(secret.metadata.annotations).toMatchObject({ [CHECK_NAME]: name })
    urls.add(urlIn(secret))
    const { body: check } = await t.app.call('GET', `/checks/${status!.checkId}`)
    expect(check).toMatchObject({ name: name.slice(0, 100), kubernetes: { name } })
    expect((await fetch(urlIn(secret), { method: 'POST' })).status).toBe(200)
    await t.place.event(name, 'FirstSuccess')
  }
  expect(urls.size).toBe(2)
  await t.place.delete(names[0]!)
  expect(await t.place.find('secrets', targetNameOf(names[0]!))).toBeNull()
  expect(await t.place.find('secrets', targetNameOf(names[1]!))).not.toBeNull()
})
