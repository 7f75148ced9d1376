/** A service with the data of the demo, and a browser that is logged in to it. */

import type { Browser } from 'playwright-core'
import { type Demo, type DemoOptions, fillDemo } from '../../../tools/demo/demo.ts'
import { startTestApp, type TestApp } from '../../support/app.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { type Cookies, type Look, launchBrowser, openPage, type Watched } from './browser.ts'

export type Who = 'admin' | 'write' | 'read'

export interface Stage extends AsyncDisposable {
  readonly app: TestApp
  /** Of the dashboard, without a slash at its end. */
  readonly origin: string
  readonly demo: Demo
  readonly receiver: Receiver
  readonly browser: Browser
  /** A browser session of its own, at this path. `null`: not logged in. */
  open(path: string, look?: Look, who?: Who | null): Promise<Watched>
  /** Another session of the service, which ends without the others; at the list of checks. */
  logIn(who: Who, look?: Look): Promise<Watched>
}

export const PASSWORD = 'a password of the demo'

/** `null`: without the data of the demo, as after the first start. `reach`: how the service reaches its database (startTestApp). */
export async function openStage(
  fill: Pick<DemoOptions, 'days' | 'jobs'> | null = {},
  reach?: (url: string) => Promise<string>,
): Promise<Stage> {
  const [receiver, browser] = await Promise.all([startReceiver(), launchBrowser()])
  receiver.answer(({ path }) => (path === '/broken' ? { status: 410, text: 'this address is gone' } : { status: 204 }))
  let demo: Demo = { checks: new Map(), projects: new Map() }
  const app = await startTestApp({
    environment: { ALLOWED_TARGETS: '127.0.0.0/8' },
    ...(reach === undefined ? {} : { reach }),
    prepare: async (database, secretKey) => {
      if (fill !== null)
        demo = await fillDemo({ database, secretKey, receiverUrl: receiver.url, password: PASSWORD, ...fill })
    },
  })
  const origin = new URL(app.apiUrl).origin
  const cookies = new Map<Who, Cookies>()

  async function logIn(who: Who, look?: Look): Promise<Watched> {
    const [email, password] = who === 'admin' ? [app.logIn.email, app.logIn.password] : [`${who}@example.com`, PASSWORD]
    const watched = await openPage(browser, origin, look)
    await watched.page.goto('/login')
    await watched.page.getByLabel('E-mail').fill(email)
    await watched.page.getByLabel('Password').fill(password)
    await watched.page.getByRole('button', { name: 'Log in' }).click()
    await watched.page.waitForURL('**/checks')
    return watched
  }

  async function cookiesOf(who: Who): Promise<Cookies> {
    const found = cookies.get(who)
    if (found !== undefined) return found
    await using watched = await logIn(who)
    const made = await watched.context.cookies()
    cookies.set(who, made)
    return made
  }

  return {
    app,
    origin,
    demo,
    receiver,
    browser,
    async open(path, look = {}, who = 'admin') {
      const watched = await openPage(browser, origin, look, who === null ? [] : await cookiesOf(who))
      await watched.page.goto(path)
      return watched
    },
    logIn,
    async [Symbol.asyncDispose]() {
      await browser.close()
      await app.close()
      await receiver.close()
    },
  }
}
