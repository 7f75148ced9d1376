/** A HeartbeatCheck that takes over a check of the API, by its id in an annotation (design, section 6). */

import { beforeAll, describe, expect, it } from 'vitest'
import { use } from '../support/use.ts'
import { openWorkplace } from '../support/workplace.ts'
import { useScene } from './scene.ts'

const t = useScene()

const place = use(() => openWorkplace(t.cluster, { 'heartbeat-operator.io/projects': 'shop' }))
beforeAll(() => t.app.call('POST', '/projects', { name: 'shop', slug: 'shop' }))

const adopting = (id: string) => ({ annotations: { 'heartbeat-operator.io/adopt-check-id': id } })
const check = async (id: string) => (await t.app.call('GET', `/checks/${id}`)).body

async function makeOfApi(fields: object = {}): Promise<{ id: string; publicId: string }> {
  const { projects } = (await t.app.call('GET', '/projects')).body
  const shop = projects.find(({ slug }: { slug: string }) => slug === 'shop')
  return t.app.createCheck({ project_id: shop.id, ...fields })
}

describe('adoption', () => {
  it('keeps id, URL, slug and history, and brings the rest in line', async () => {
    const { id, publicId } = await makeOfApi({ name: 'By hand', slug: 'by-hand', description: 'x' })
    const url = `${t.app.pingUrl}/ping/${publicId}`
    await fetch(url)
    const { status } = await place.makeReady('adopter', { periodSeconds: 600 }, adopting(id))
    expect(status).toMatchObject({ checkId: id, slug: 'by-hand', state: 'up' })
    expect(await place.pingUrl('adopter')).toBe(url)
    expect(await check(id)).toMatchObject({
      name: 'adopter',
      description: null,
      period_seconds: 600,
      managed_by: 'kubernetes',
      kubernetes: { cluster: 'default', namespace: place.name, name: 'adopter' },
    })
    expect((await t.app.call('GET', `/checks/${id}/pings`)).body.pings).toHaveLength(1)
    await place.event('adopter', 'Adopted')
    // The annotation may stay, and may go.
    await place.change('adopter', { spec: { graceSeconds: 1 } })
    await place.ready('adopter')
    await place.change('adopter', { metadata: { annotations: null }, spec: { graceSeconds: 2 } })
    expect((await place.ready('adopter')).status?.checkId).toBe(id)
  })

  it('works once a wrong id is corrected, although the resource was Stalled', async () => {
    const { id } = await makeOfApi()
    await place.apply('corrected', undefined, adopting('0198a000-0000-7000-8000-000000000001'))
    await place.stalled('corrected', 'AdoptionRefused')
    await place.change('corrected', { metadata: adopting(id) })
    expect((await place.ready('corrected')).status?.checkId).toBe(id)
  })
})
