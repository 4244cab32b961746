// SPDX-License-Identifier: Apache-2.0
// The least that a CGI program can do.
#include <stdio.h>

int main(void)
{
	fputs("Content-Type: text/plain\r\n\r\nHello from a NetServ node\n", stdout);
	return 0;
}
