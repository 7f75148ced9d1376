/** For contexts of tests. At the cost of the product each password would take a fifth of a second, which would be most of the time of many tests. */
export const LOW_COST = { logN: 4, r: 8, p: 1 }
