/** Node resolves imports as bundlers do, without their file extensions: the form in which @hey-api/openapi-ts writes them. */

import { registerHooks } from 'node:module'

registerHooks({
  resolve(specifier, context, next) {
    for (const end of ['', '.js', '/index.js']) {
      try {
        return next(specifier + end, context)
      } catch {
        // The next form.
      }
    }
    return next(specifier, context)
  },
})
