/** A real Chromium that watches its pages: what they log, what they request, and whether they fit. */

import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { findChromium } from '../../../tools/programs/chromium-program.ts'

/** Started; it ends with the process that started it. */
export async function launchBrowser(): Promise<Browser> {
  const { path, environment } = await findChromium()
  return chromium.launch({ executablePath: path, env: environment })
}

export interface Look {
  readonly theme?: 'light' | 'dark'
  readonly width?: number
  readonly height?: number
  /** Whether scripts run. */
  readonly script?: boolean
  readonly timeZone?: string
}

export interface Watched extends AsyncDisposable {
  readonly page: Page
  readonly context: BrowserContext
  /** What no page may do, in words: errors in the console, rejected by the content security policy, requests to others. */
  readonly faults: string[]
}

export async function openPage(
  browser: Browser,
  origin: string,
  look: Look = {},
  cookies: Cookies = [],
): Promise<Watched> {
  const { theme = 'light', width = 1_280, height = 800, script = true, timeZone = 'Europe/Berlin' } = look
  const options: BrowserContextOptions = {
    baseURL: origin,
    viewport: { width, height },
    colorScheme: theme,
    javaScriptEnabled: script,
    timezoneId: timeZone,
    locale: 'en-GB',
    // Otherwise pictures would catch a transition half way.
    reducedMotion: 'reduce',
    ...(width < 600 ? { hasTouch: true, isMobile: true } : {}),
  }
  const context = await browser.newContext(options)
  if (cookies.length > 0) await context.addCookies([...cookies])
  const faults: string[] = []
  context.on('page', (page) => watch(page, origin, faults))
  const page = await context.newPage()
  page.setDefaultTimeout(25_000)
  return { page, context, faults, [Symbol.asyncDispose]: () => context.close() }
}

export type Cookies = Awaited<ReturnType<BrowserContext['cookies']>>

function watch(page: Page, origin: string, faults: string[]): void {
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`script: ${error.message}`))
  page.on('request', (request) => {
    const url = new URL(request.url())
    if (url.protocol !== 'data:' && url.origin !== origin) faults.push(`request to ${url.origin}`)
  })
}

/** What moves the page sideways: the outermost elements that are wider than the window, by their start tags. */
export function findOverflow(page: Page): Promise<string[]> {
  return page.evaluate(`(() => {
    const { scrollWidth, clientWidth } = document.documentElement
    if (scrollWidth <= clientWidth) return []
    const isWide = (element) => element.getBoundingClientRect().right > clientWidth + 1
    const wide = [...document.body.querySelectorAll('*')].filter(isWide)
    const outermost = wide.filter((element) => !wide.includes(element.parentElement))
    return outermost.map((element) => element.parentElement.outerHTML.slice(0, 60) + ' > ' + element.outerHTML.slice(0, 120))
  })()`)
}
