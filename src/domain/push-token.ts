/** What a token of a push monitor may be: Uptime Kuma makes 32 letters and digits. */
export const PUSH_TOKEN = /^[A-Za-z0-9_-]{1,64}$/
export const PUSH_TOKEN_LENGTH = 64
