/** Pairs that differ in little, beside the equal ones that a reader who is too strict would miss. */
export const NEAR_PAIRS = String.raw`
# ratios and times
2:3 == 4:6
1:2:3 == 2:4:6
10:25 == 2:5
4:00 == 4:00
10:05 == 10:05
2:30 == 2:30
4:00 != 5:00
12:00 != 6:00
10:05 != 2:1
2:30 != 1:15
2:30 != 4:60
x=4:00 != x=5:00
0:1:2 != 0:5:7
1:2 != 0:0
0:0 != 3:4
1:0 != 2:0
2:3 != 3:2

# a fraction after an exponent, a root or an argument
x^2\frac{1}{2} == \frac{x^2}{2}
2^2\frac12 == 2
\sqrt2\frac{1}{2} == \frac{\sqrt2}{2}
\frac12\frac{1}{3} == \frac16
\frac23\frac34 == \frac12
\log_2\frac14 == -2
\log_3\frac{1}{9} == -2
\sin^2\frac12 == (\sin\frac12)^2
\pi r^2\frac13h == \frac{\pi r^2h}{3}
10^3\frac12 == 500
3\frac12 == 3.5
2^{1\frac12} == 2\sqrt2
x^2\frac{1}{2} != x^{5/2}
2^2\frac12 != 2^{5/2}
x^{-2}\frac12 != x^{-5/2}
x^-2\frac12 != x^{-5/2}
\sqrt2\frac{1}{2} != \sqrt{\frac52}
\sqrt[3]2\frac12 != \sqrt[3]{2.5}
\frac12\frac{1}{3} != \frac37
x^3 1/3 != x^{10/3}
e^2\frac{1}{2} != e^{5/2}
\log_2\frac14 != \log_{2.25}1
2^{1\frac12} != 1
3\frac12 != \frac32

# the values of a tuple that is named
(m,b)=(2,3) == (2,3)
(\rho,\theta,\phi)=(1,2,3) == (1,2,3)
(y,x)=(1,2) == (1,2)
(m,b)=(2,3) == m=2, b=3
y=2, x=1 == (1,2)
(m,b)=(2,3) != (3,2)
(\rho,\theta,\phi)=(1,2,3) != (3,1,2)
(m,b)=(2,3) != m=3, b=2
(y,x)=(1,2) != (x,y)=(1,2)
y=2, x=1 != (2,1)
`;
