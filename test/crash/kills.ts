/** How often each file kills, at least 10: `KILLS=50 npm run test:crash`. A night can afford more than a change. */
export const KILLS = Number(process.env.KILLS || 15)
