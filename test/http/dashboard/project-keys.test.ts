/** The ping key and the badges of a project, in the settings. */

import { expect, it } from 'vitest'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { createVisitor, visit } from '../../support/visitor.ts'

const USER = { email: 'ann@example.com', password: 'a long enough password' }

const api = use(startTestApi)
const admin = use(() => visit(api))

it('the page of a project has its keys, where an admin creates, replaces and revokes them', async () => {
  const { id } = (await api.client.post('/projects', { name: 'Shop [a](b) <b>' })).body
  const path = `/settings/projects/${id}`
  const keyOf = async (kind: string) => (await api.client.get(`/projects/${id}/${kind}-key`)).body[`${kind}_key`]
  const read = async () => (await admin.get(path)).text
  const badgeKey = await keyOf('badge')
  const before = await read()
  expect(before).toContain('The project has no ping key.')
  expect(before).toContain(`<img src="/badge/${badgeKey}.svg" alt="Status of all checks of the project"`)
  const origin = new URL(api.url).origin
  const name = 'Shop \\[a\\](b) \\&lt;b\\&gt;'
  expect(before).toContain(`<code id="badge-markdown">![${name}](${origin}/badge/${badgeKey}.svg)</code>`)
  expect(before).toContain(`![slug](${origin}/badge/${badgeKey}/slug.svg)`)
  expect(before).toContain(`![tag](${origin}/badge/${badgeKey}/tag/tag.svg)`)
  expect((await fetch(`${origin}/badge/${badgeKey}.svg`)).status).toBe(200)

  for (const kind of ['ping', 'badge']) {
    const old = await keyOf(kind)
    expect((await admin.post(`${path}/${kind}-key`)).location).toBe(`${path}?done=${kind}-key-created`)
    const key = await keyOf(kind)
    expect(key).not.toBe(old)
    expect(await read()).toContain(key)
    for (const [question, word] of [
      [`${path}/${kind}-key`, 'Replace'],
      [`${path}/${kind}-key/revoke`, 'Revoke'],
    ]) {
      const { text } = await admin.get(question!)
      expect(text).toContain(`<h1>${word} the ${kind} key?</h1>`)
      expect(text).toContain('Shop [a](b) &lt;b&gt;')
      expect(text).not.toContain(key)
      expect(await keyOf(kind)).toBe(key)
    }
    expect((await admin.post(`${path}/${kind}-key/revoke`)).location).toBe(`${path}?done=${kind}-key-revoked`)
    expect(await keyOf(kind)).toBeNull()
    expect(await read()).toContain(`The project has no ${kind} key.`)
    expect(await read()).not.toContain(key)
  }

  const user = createVisitor(new URL(api.url).origin)
  await api.client.post('/users', { ...USER, scope: 'write' })
  await user.logIn(USER)
  for (const place of ['', '/ping-key', '/badge-key', '/ping-key/revoke', '/badge-key/revoke'])
    expect((await user.get(path + place)).status).toBe(403)
  for (const place of ['/ping-key', '/badge-key', '/ping-key/revoke', '/badge-key/revoke'])
    expect((await user.post(path + place)).status).toBe(403)
  const { entries } = (await api.client.get(`/audit?target_id=${id}`)).body
  const changes = ['badge_key', 'ping_key'].flatMap((key) =>
    ['revoked', 'created'].map((change) => ({ action: 'project.changed', detail: { changed: [key], change } })),
  )
  expect(entries).toMatchObject([...changes, { action: 'project.created' }])
})
