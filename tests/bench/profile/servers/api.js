// SPDX-License-Identifier: Apache-2.0
// A web server with a few kinds of work: node api.js PORT
'use strict';
const crypto = require('crypto');
const http = require('http');
const zlib = require('zlib');

const orders = [];
for (let i = 0; i < 500; ++i) {
  orders.push({id: i, customer: `customer ${i * 7919 % 211}`,
               lines: [{article: i % 13, count: i % 5 + 1}]});
}

function totals() {
  const byCustomer = new Map();
  for (const {customer, lines} of orders) {
    const sum = lines.reduce((n, line) => n + line.count, 0);
    byCustomer.set(customer, (byCustomer.get(customer) || 0) + sum);
  }
  return [...byCustomer].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

function search(word) {
  const pattern = new RegExp(`\\b${word}\\d*`, 'g');
  return orders.filter((order) => pattern.test(order.customer)).length;
}

const routes = {
  '/orders': () => JSON.stringify(JSON.parse(JSON.stringify(orders))),
  '/totals': () => JSON.stringify(totals()),
  '/search': () => String(search('customer 1')),
  '/sign': () => crypto.pbkdf2Sync('secret', 'salt', 200, 32, 'sha256')
      .toString('hex'),
  '/packed': () => zlib.gzipSync(JSON.stringify(orders)),
};

http.createServer((request, response) => {
  const route = routes[request.url];
  response.statusCode = route ? 200 : 404;
  response.end(route ? route() : '');
}).listen(Number(process.argv[2]), '127.0.0.1');
