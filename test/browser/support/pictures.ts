/** The pictures of docs/images. `npm run pictures` writes them; other runs of the tests leave the files alone. */

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'

const PICTURES = fileURLToPath(new URL('../../../docs/images', import.meta.url))
const isWriting = process.env.PICTURES === 'write'

/** `height`: of the picture. Default: what the window shows. It begins at the top of the page, or at `from`. */
export async function takePicture(page: Page, name: string, height?: number, from?: string): Promise<void> {
  if (!isWriting) return
  await mkdir(PICTURES, { recursive: true })
  const { width, height: shown } = page.viewportSize()!
  const y = from === undefined ? 0 : (await page.locator(from).boundingBox())!.y - 16
  await page.screenshot({
    path: join(PICTURES, `${name}.png`),
    clip: { x: 0, y, width, height: height ?? shown },
    fullPage: true,
    caret: 'hide',
  })
}
